/** So long page and service worker wait for one another: one of them may have been put to sleep. */
const LOCK_TIMEOUT = 2000

/**
 * alone has a look at what is shown, or changes it, while nothing else of this page does. Chromium forgets a notification that is shown
 * in the moment in which others are listed: it stays on the screen, and can be neither chosen nor closed any more.
 */
export async function exclusively<T>(work: () => Promise<T>): Promise<T> {
  let begun = false
  try {
    return await navigator.locks.request('notifications', { signal: AbortSignal.timeout(LOCK_TIMEOUT) }, () => {
      begun = true
      return work()
    })
  } catch (error) {
    if (begun) throw error
    return work()
  }
}

interface Registration {
  showNotification(title: string, options: object): Promise<void>
  getNotifications(filter: { tag: string }): Promise<unknown[]>
}

/**
 * place shows a notification, again without a sound where the browser knows nothing of it afterwards: Chromium may take the closing of
 * the one before, of the same tag, for that of this one. Call it alone.
 */
export async function showNotification(registration: Registration, title: string, options: NotificationOptions & { tag: string }): Promise<void> {
  await registration.showNotification(title, options)
  if ((await registration.getNotifications({ tag: options.tag })).length > 0) return
  await registration.showNotification(title, { ...options, renotify: false, silent: true })
}
