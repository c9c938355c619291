import { readNotice, Speech, without, type Notice } from '../notify/notice'
import { forget, recall } from '../notify/memory'
import { press } from '../notify/press'
import { alone, place } from '../notify/shown'
import { page, worker, type PageWindow } from './scope'

/** So long a page that is looked at may take to fetch what a notification would tell of. */
const PAGE_ANSWERS = 6000

/** So long the browser's database may take to answer: after a wake it can hang. */
const DATABASE_ANSWERS = 1500

const pause = (time: number) => new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), time))

/** Browsers that take notifications away from a page whose push shows nothing, whatever the reason. */
const demanding = /AppleWebKit/.test(worker.navigator.userAgent) && !/Chrom(e|ium)/.test(worker.navigator.userAgent)

worker.addEventListener('push', (event: { data: { text(): string } | null; waitUntil(done: Promise<unknown>): void }) => {
  event.waitUntil(pushed(event.data?.text() ?? ''))
})

worker.addEventListener('notificationclick', (event: { action: string; notification: { data: { notice?: Notice } | null; close(): void }; waitUntil(done: Promise<unknown>): void }) => {
  const { action, notification } = event
  const notice = notification.data?.notice
  notification.close()
  event.waitUntil(notice?.actions.some(({ id }) => id === action) ? answer(notice, action) : visit(notice))
})

worker.addEventListener('pushsubscriptionchange', (event: { oldSubscription?: PushSubscription; waitUntil(done: Promise<unknown>): void }) => {
  event.waitUntil(resubscribe(event.oldSubscription))
})

async function pushed(data: string): Promise<void> {
  const notice = readNotice(data)
  if (notice.type === 'withdraw') return alone(() => withdraw(notice.ids))
  if (notice.type !== 'test' && (await beingRead())) return alone(pretend)
  await show(notice)
  if (notice.type === 'test') for (const window of await windows()) window.postMessage({ arrived: true })
}

function show(notice: Notice): Promise<void> {
  return alone(() => paint(notice))
}

async function paint(notice: Notice, quietly = false): Promise<void> {
  const most = (Notification as unknown as { maxActions?: number }).maxActions ?? 0
  const { title, options } = (await speech()).picture(notice, most, quietly)
  await place(worker.registration, title, options)
}

/** speech are the words in the language of the page. A database that does not answer must not keep a notification back. */
async function speech(): Promise<Speech> {
  const { language } = await Promise.race([recall(page), pause(DATABASE_ANSWERS)]).catch(() => undefined) ?? { language: undefined }
  const wanted = [language ?? '', ...worker.navigator.languages].map((tag) => tag.slice(0, 2))
  return new Speech(wanted.find((tag) => tag === 'en' || tag === 'ru') === 'ru' ? 'ru' : 'en')
}

/** windows are those that show the page, the last used first. */
async function windows(): Promise<PageWindow[]> {
  const all = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
  return all.filter(({ url }) => url.replace(/[?#].*/s, '') === page)
}

/** beingRead asks the page that a person looks at whether it gets from the server itself what a notification would tell of. */
async function beingRead(): Promise<boolean> {
  const window = (await windows()).find(({ focused, visibilityState }) => focused && visibilityState === 'visible')
  if (!window) return false
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), PAGE_ANSWERS)
    port1.onmessage = ({ data }) => {
      clearTimeout(timer)
      resolve(data === true)
    }
    window.postMessage({ fetch: true }, [port2])
  })
}

/** withdraw closes what needs no attention any more, and puts the rest right. */
async function withdraw(ids: string[]): Promise<void> {
  for (const shown of await worker.registration.getNotifications()) {
    const notice = shown.data?.notice
    const left = notice && without(notice, ids)
    if (!notice || left === notice) continue
    if (left && notice.type !== 'card') await paint(left, true)
    else if (!left) shown.close()
  }
  await pretend()
}

/** pretend shows something to a browser that demands it, and nothing to the person. */
async function pretend(): Promise<void> {
  if (!demanding) return
  const shown = (await worker.registration.getNotifications()).at(-1)?.data?.notice
  if (shown) return paint(shown, true)
  await worker.registration.showNotification('Hermes', { body: (await speech()).say('noticeNothing'), tag: 'nothing', silent: true })
  for (const one of await worker.registration.getNotifications()) if (one.tag === 'nothing') one.close()
}

/** answer gives the answer of a button, and tells what became of it in the place of the question. */
async function answer(notice: Notice, action: string): Promise<void> {
  const { words, again } = await press(new URL('push/action', page).href, notice.actions.find(({ id }) => id === action)!, notice.actions, await speech())
  await show({ ...notice, type: 'outcome', outcome: words, actions: again ? notice.actions : [] })
}

/** visit brings the person to the page, and the page to what the notification told of. */
async function visit(notice?: Notice): Promise<void> {
  const id = notice?.id ?? ''
  const [window] = await windows()
  if (!window) {
    await worker.clients.openWindow(page + (id && '#show=' + encodeURIComponent(id)))
    return
  }
  window.postMessage({ show: id })
  await window.focus().catch(() => {}) // a browser may find that this is no time for it
}

/** resubscribe replaces a subscription that the browser gave up. The page tells the server of it, now or when it is opened. */
async function resubscribe(old?: PushSubscription): Promise<void> {
  const { key } = await recall(page)
  const applicationServerKey = old?.options.applicationServerKey ?? key
  if (!applicationServerKey) return forget(page) // notifications are off
  await worker.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
  for (const window of await windows()) window.postMessage({ renew: true })
}
