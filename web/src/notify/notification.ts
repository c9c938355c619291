import { notification as english } from '../i18n/en/notification'
import { notification as russian } from '../i18n/ru/notification'
import { fillTemplate, pluralText } from '../i18n/template'

/** An option of a card that a button of the notification can choose. */
export interface NoticeAction {
  id: string
  label: string
  token: string
}

/**
 * PushNotice is the content of a notification (doc/protocol.md §9). `wake` is anything unreadable,
 * `outcome` the result of an answer.
 */
export interface PushNotice {
  type: 'message' | 'file' | 'card' | 'notice' | 'test' | 'withdraw' | 'wake' | 'outcome'
  /** The message, file, or card that it is about. */
  id: string
  ids: string[]
  count: number
  title: string
  body: string
  actions: NoticeAction[]
  /** Of a notice: the name of its device, if it may be shown. */
  device?: string
  /** The result of the answer, as text. */
  outcome?: string
}

/** A notification as the browser's API takes it. */
export interface RenderedNotification {
  title: string
  options: NotificationOptions & { tag: string; renotify: boolean; actions: { action: string; title: string }[]; data: { notice: PushNotice } }
}

const types = ['message', 'file', 'card', 'notice', 'test', 'withdraw']
const tables = { en: english, ru: russian }
export type NoticeLanguage = keyof typeof tables
type TextKey = Exclude<keyof typeof english, 'noticeMessages'>

const text = (value: unknown) => (typeof value === 'string' ? value : '')
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** parseNotice parses what the server sent. */
export function parseNotice(data: string): PushNotice {
  let said: Record<string, unknown> = {}
  try {
    said = Object(JSON.parse(data)) as Record<string, unknown>
  } catch {
    // The browser requires a notification all the same.
  }
  const ids = list(said.ids).filter((id): id is string => typeof id === 'string')
  const actions = list(said.actions).map((one) => Object(one) as Record<string, unknown>)
  return {
    type: types.includes(text(said.type)) ? (said.type as PushNotice['type']) : 'wake',
    id: text(said.id) || (ids.at(-1) ?? ''),
    ids,
    count: typeof said.count === 'number' && said.count > 0 ? Math.floor(said.count) : ids.length,
    title: text(said.title),
    body: text(said.body),
    ...(text(said.device) && { device: text(said.device) }),
    actions: actions.map(({ id, label, token }) => ({ id: text(id), label: text(label), token: text(token) })).filter(({ id, token }) => id && token),
  }
}

/**
 * withoutIDs returns the notice without ids that need no attention any more, or undefined if
 * nothing is left.
 */
export function withoutIDs(notice: PushNotice, ids: string[]): PushNotice | undefined {
  if (!['message', 'file', 'card', 'notice'].includes(notice.type)) return notice
  const left = notice.ids.filter((id) => !ids.includes(id))
  if (left.length === notice.ids.length) return notice
  const over = ids.includes(notice.id)
  if (left.length === 0 || (['card', 'notice'].includes(notice.type) && over)) return undefined
  const count = Math.max(left.length, notice.count - (notice.ids.length - left.length))
  // The text belonged to an id that is gone.
  return { ...notice, ids: left, count, ...(over && { type: 'message', id: left.at(-1)!, title: '', body: '' }) }
}

/**
 * notificationTag returns the tag of notifications that replace one another. Messages share one.
 * Each card and each notice has its own.
 */
export function notificationTag({ type, id }: PushNotice): string {
  if (type === 'card' || type === 'outcome') return 'card ' + id
  if (type === 'notice') return 'notice ' + id
  return type === 'message' || type === 'file' ? 'messages' : type
}

/** buttonActions returns the options that get a button: allow once, and deny. */
export function buttonActions(actions: NoticeAction[], most: number): NoticeAction[] {
  const deny = actions.find(({ id }) => id === 'deny')
  const allow = actions.find(({ id }) => id === 'once') ?? actions.find((one) => one !== deny)
  return [allow, deny].filter((one) => one !== undefined).slice(0, most)
}

/** NotificationTexts renders notifications in one language. */
export class NotificationTexts {
  constructor(readonly language: NoticeLanguage) {}

  text(word: TextKey, values: Record<string, string> = {}): string {
    return fillTemplate(tables[this.language][word], values)
  }

  /** render converts a notice to a notification. `quietly`: it only corrects one that is shown. */
  render(notice: PushNotice, most: number, quietly = false): RenderedNotification {
    const { type, title, body, actions } = notice
    const asks = type === 'card' || type === 'notice'
    const buttons = buttonActions(actions, most).map(({ id, label }) => ({
      action: id, title: id === 'once' ? this.text('noticeAllow') : id === 'deny' ? this.text('noticeDeny') : label || id,
    }))
    return {
      title: title || 'Hermes',
      options: {
        body: this.body(notice), tag: notificationTag(notice), lang: body ? '' : this.language, dir: 'auto', icon: './icon-192.png', renotify: !quietly, silent: quietly,
        requireInteraction: asks, actions: buttons, data: { notice },
      },
    }
  }

  private messageCount(n: number): string {
    return pluralText(tables[this.language].noticeMessages, this.language, n)
  }

  private body({ type, body, count, outcome, actions, device }: PushNotice): string {
    const many = count > 1 ? this.messageCount(count) : ''
    switch (type) {
      case 'message':
      case 'file':
        // The text is the newest message's. Of the others, only the number is shown.
        if (body) return many ? `${body}\n${many}` : body
        return type === 'file' && !many ? this.text('noticeFile') : many || this.messageCount(1)
      case 'card': {
        // If the server offers only the safe answers, the notification doesn't contain the whole
        // question.
        const unread = actions.length > 0 && actions.every(({ id }) => id === 'deny' || id === 'cancel')
        return [body || this.text('noticeCard'), unread && this.text('noticeReview')].filter(Boolean).join('\n')
      }
      case 'notice':
        return device ? this.text('noticeDevice', { name: device }) : this.text('noticeDevices')
      case 'test':
        return this.text('noticeTest')
      case 'outcome':
        return [outcome, body].filter(Boolean).join('\n')
      default:
        return this.text('noticeWake')
    }
  }
}
