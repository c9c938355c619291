/**
 * How long page and service worker wait for each other, in milliseconds. The system may have
 * suspended one of them.
 */
const LOCK_TIMEOUT = 2000

/**
 * exclusively runs work on the shown notifications while nothing else of this page touches them.
 * Chromium loses a notification that is shown while others are listed: it stays on the screen and
 * can be neither clicked nor closed.
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
 * showNotification shows a notification, and again silently if the browser doesn't list it
 * afterwards. Chromium may take the closing of an earlier one with the same tag for this one's.
 * Call it from exclusively.
 */
export async function showNotification(registration: Registration, title: string, options: NotificationOptions & { tag: string }): Promise<void> {
  await registration.showNotification(title, options)
  if ((await registration.getNotifications({ tag: options.tag })).length > 0) return
  await registration.showNotification(title, { ...options, renotify: false, silent: true })
}
