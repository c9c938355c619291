/** What tells that a page was away and is back, or that the network changed. */
export interface Surroundings {
  /** online, offline, pageshow, pagehide. */
  window?: EventTarget
  /** visibilitychange, resume. */
  document?: EventTarget & { readonly visibilityState?: string }
}

/** What the signs do. */
export interface Sleeper {
  /** Look whether the connection lives; where there is none, try at once. */
  wake(): void
  /** Look whether the connection lives. */
  doubt(): void
  /** Close the connection until wake. */
  suspend(): void
}

/** surroundingsHere are those of a browser; empty elsewhere. */
export function surroundingsHere(): Surroundings {
  const { window, document } = globalThis as { window?: EventTarget; document?: EventTarget }
  return window?.addEventListener && document?.addEventListener ? { window, document } : {}
}

/** watch ties the signs to a device, and returns what unties them. */
export function watch(sleeper: Sleeper, { window, document }: Surroundings): () => void {
  const ties: (() => void)[] = []
  const tie = (target: EventTarget | undefined, type: string, act: () => void) => {
    if (!target) return
    target.addEventListener(type, act)
    ties.push(() => target.removeEventListener(type, act))
  }
  tie(window, 'online', () => sleeper.wake())
  tie(window, 'offline', () => sleeper.doubt())
  // A page with an open connection is not kept for the back button; one that closed it is, and comes back with pageshow.
  tie(window, 'pagehide', () => sleeper.suspend())
  tie(window, 'pageshow', () => sleeper.wake())
  tie(document, 'resume', () => sleeper.wake())
  tie(document, 'visibilitychange', () => {
    if (document?.visibilityState !== 'hidden') sleeper.wake()
  })
  return () => ties.forEach((untie) => untie())
}
