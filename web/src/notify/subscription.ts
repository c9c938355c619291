import { t } from '../words/words'

/** So long the browser may take for its own push service. */
const SUBSCRIBING = 30_000

/** within waits for something that may never come. */
export async function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(what)), ms)))
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** registered is the service worker of the page, where it is at work. */
export function registered(): Promise<ServiceWorkerRegistration> {
  return within(navigator.serviceWorker.ready, 10_000, t('notifyNoWorker'))
}

/** subscribed gives the browser's subscription for the server's key, and makes it where there is none. */
export async function subscribed(key: string): Promise<PushSubscription> {
  const { pushManager } = await registered()
  const known = await pushManager.getSubscription()
  if (known && sameKey(known.options.applicationServerKey, key)) return known
  await known?.unsubscribe()
  try {
    return await within(pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }), SUBSCRIBING, t('notifyNoService'))
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? new Error(t('notifyNoService')) : error
  }
}

/** unsubscribe has the browser take nothing more from its push service. */
export async function unsubscribe(): Promise<void> {
  const { pushManager } = await registered()
  await (await pushManager.getSubscription())?.unsubscribe()
}

/** sameKey compares the key of a subscription with one in base64url. */
export function sameKey(bytes: ArrayBuffer | null, key: string): boolean {
  return bytes !== null && btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '') === key.replace(/=+$/, '')
}
