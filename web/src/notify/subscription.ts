import { t } from '../i18n/i18n'

/** How long the browser may take to reach its push service, in milliseconds. */
const SUBSCRIBE_TIMEOUT = 30_000

/** withTimeout rejects with the error `what` if a promise takes too long. */
export async function withTimeout<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(what)), ms)))
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** readyWorker returns the page's service worker once it is active. */
export function readyWorker(): Promise<ServiceWorkerRegistration> {
  return withTimeout(navigator.serviceWorker.ready, 10_000, t('notifyNoWorker'))
}

/**
 * ensureSubscription returns the browser's subscription for the server's key, and creates it if
 * needed.
 */
export async function ensureSubscription(key: string): Promise<PushSubscription> {
  const { pushManager } = await readyWorker()
  const known = await pushManager.getSubscription()
  if (known && sameKey(known.options.applicationServerKey, key)) return known
  await known?.unsubscribe()
  try {
    return await withTimeout(pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }), SUBSCRIBE_TIMEOUT, t('notifyNoService'))
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? new Error(t('notifyNoService')) : error
  }
}

/** unsubscribe ends the browser's subscription. */
export async function unsubscribe(): Promise<void> {
  const { pushManager } = await readyWorker()
  await (await pushManager.getSubscription())?.unsubscribe()
}

/** sameKey compares the key of a subscription with one in base64url. */
export function sameKey(bytes: ArrayBuffer | null, key: string): boolean {
  return bytes !== null && btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '') === key.replace(/=+$/, '')
}
