import { parseNotice, NotificationTexts, withoutIDs, type PushNotice } from '../notify/notification'
import { clearWorkerState, loadWorkerState } from '../notify/workerState'
import { sendAction } from '../notify/action'
import { exclusively, showNotification } from '../notify/display'
import { page, worker, type PageWindow } from './scope'

/** How long a visible page may take to fetch what a notification is about, in milliseconds. */
const PAGE_TIMEOUT = 6000

/** How long the browser's database may take, in milliseconds. It can hang after a wake-up. */
const DATABASE_TIMEOUT = 1500

const delay = (time: number) => new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), time))

/**
 * Whether the browser revokes notifications from a page whose push shows nothing, whatever the
 * reason.
 */
const requiresNotification = /AppleWebKit/.test(worker.navigator.userAgent) && !/Chrom(e|ium)/.test(worker.navigator.userAgent)

worker.addEventListener('push', (event: { data: { text(): string } | null; waitUntil(done: Promise<unknown>): void }) => {
  event.waitUntil(onPush(event.data?.text() ?? ''))
})

worker.addEventListener('notificationclick', (event: { action: string; notification: { data: { notice?: PushNotice } | null; close(): void }; waitUntil(done: Promise<unknown>): void }) => {
  const { action, notification } = event
  const notice = notification.data?.notice
  notification.close()
  event.waitUntil(notice?.actions.some(({ id }) => id === action) ? runAction(notice, action) : openPage(notice))
})

worker.addEventListener('pushsubscriptionchange', (event: { oldSubscription?: PushSubscription; waitUntil(done: Promise<unknown>): void }) => {
  event.waitUntil(resubscribe(event.oldSubscription))
})

async function onPush(data: string): Promise<void> {
  const notice = parseNotice(data)
  if (notice.type === 'withdraw') return exclusively(() => withdraw(notice.ids))
  if (notice.type !== 'test' && (await pageWillFetch())) return exclusively(showPlaceholder)
  await showNotice(notice)
  if (notice.type === 'test') for (const window of await pageWindows()) window.postMessage({ arrived: true })
}

function showNotice(notice: PushNotice): Promise<void> {
  return exclusively(() => displayNotice(notice))
}

async function displayNotice(notice: PushNotice, quietly = false): Promise<void> {
  const most = (Notification as unknown as { maxActions?: number }).maxActions ?? 0
  const { title, options } = (await loadTexts()).render(notice, most, quietly)
  await showNotification(worker.registration, title, options)
}

/**
 * loadTexts returns the texts in the language of the page. A database that hangs must not hold back
 * a notification.
 */
async function loadTexts(): Promise<NotificationTexts> {
  const { language } = await Promise.race([loadWorkerState(page), delay(DATABASE_TIMEOUT)]).catch(() => undefined) ?? { language: undefined }
  const wanted = [language ?? '', ...worker.navigator.languages].map((tag) => tag.slice(0, 2))
  return new NotificationTexts(wanted.find((tag) => tag === 'en' || tag === 'ru') === 'ru' ? 'ru' : 'en')
}

/** pageWindows returns the windows that show the page, the last used first. */
async function pageWindows(): Promise<PageWindow[]> {
  const all = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
  return all.filter(({ url }) => url.replace(/[?#].*/s, '') === page)
}

/** pageWillFetch asks the visible page whether it gets the news from the server itself. */
async function pageWillFetch(): Promise<boolean> {
  const window = (await pageWindows()).find(({ focused, visibilityState }) => focused && visibilityState === 'visible')
  if (!window) return false
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), PAGE_TIMEOUT)
    port1.onmessage = ({ data }) => {
      clearTimeout(timer)
      resolve(data === true)
    }
    window.postMessage({ fetch: true }, [port2])
  })
}

/** withdraw closes notifications that need no attention any more, and corrects the others. */
async function withdraw(ids: string[]): Promise<void> {
  for (const shown of await worker.registration.getNotifications()) {
    const notice = shown.data?.notice
    const left = notice && withoutIDs(notice, ids)
    if (!notice || left === notice) continue
    if (left && notice.type !== 'card') await displayNotice(left, true)
    else if (!left) shown.close()
  }
  await showPlaceholder()
}

/** showPlaceholder satisfies a browser that requires a notification, without bothering the user. */
async function showPlaceholder(): Promise<void> {
  if (!requiresNotification) return
  const shown = (await worker.registration.getNotifications()).at(-1)?.data?.notice
  if (shown) return displayNotice(shown, true)
  await worker.registration.showNotification('Hermes', { body: (await loadTexts()).text('noticeNothing'), tag: 'nothing', silent: true })
  for (const one of await worker.registration.getNotifications()) if (one.tag === 'nothing') one.close()
}

/** runAction sends the answer of a button and shows the outcome in place of the question. */
async function runAction(notice: PushNotice, action: string): Promise<void> {
  const { text, retry } = await sendAction(new URL('push/action', page).href, notice.actions.find(({ id }) => id === action)!, notice.actions, await loadTexts())
  await showNotice({ ...notice, type: 'outcome', outcome: text, actions: retry ? notice.actions : [] })
}

/** openPage brings the user to the page, and the page to the notification's item. */
async function openPage(notice?: PushNotice): Promise<void> {
  const id = notice?.id ?? ''
  const [window] = await pageWindows()
  if (!window) {
    await worker.clients.openWindow(page + (id && '#show=' + encodeURIComponent(id)))
    return
  }
  window.postMessage({ show: id })
  await window.focus().catch(() => {}) // a browser may not allow the focus now
}

/**
 * resubscribe replaces a subscription that the browser dropped. The page tells the server, now or
 * when it is opened.
 */
async function resubscribe(old?: PushSubscription): Promise<void> {
  const { key } = await loadWorkerState(page)
  const applicationServerKey = old?.options.applicationServerKey ?? key
  if (!applicationServerKey) return clearWorkerState(page) // notifications are off
  await worker.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
  for (const window of await pageWindows()) window.postMessage({ renew: true })
}
