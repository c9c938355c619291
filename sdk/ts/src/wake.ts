/** Signals that a page was in the background and is back, or that the network changed. */
export interface Surroundings {
  /** online, offline, pageshow, pagehide. */
  window?: EventTarget
  /** visibilitychange, resume. */
  document?: EventTarget & { readonly visibilityState?: string }
}

/** The reactions to these signals. */
export interface Sleeper {
  /** Check the connection, or connect at once where there is none. */
  wake(): void
  /** Check the connection. */
  doubt(): void
  /** Close the connection until wake. */
  suspend(): void
}

/** surroundingsHere returns those of a browser, undefined elsewhere. */
export function surroundingsHere(): Surroundings {
  const { window, document } = globalThis as { window?: EventTarget; document?: EventTarget }
  return window?.addEventListener && document?.addEventListener ? { window, document } : {}
}

/** watch connects the signals to a device, and returns a function that disconnects them. */
export function watch(sleeper: Sleeper, { window, document }: Surroundings): () => void {
  const ties: (() => void)[] = []
  const tie = (target: EventTarget | undefined, type: string, act: () => void) => {
    if (!target) return
    target.addEventListener(type, act)
    ties.push(() => target.removeEventListener(type, act))
  }
  tie(window, 'online', () => sleeper.wake())
  tie(window, 'offline', () => sleeper.doubt())
  // The browser does not cache a page with an open connection for the back button. A page that closed it comes back with pageshow.
  tie(window, 'pagehide', () => sleeper.suspend())
  tie(window, 'pageshow', () => sleeper.wake())
  tie(document, 'resume', () => sleeper.wake())
  tie(document, 'visibilitychange', () => {
    if (document?.visibilityState !== 'hidden') sleeper.wake()
  })
  return () => ties.forEach((untie) => untie())
}
