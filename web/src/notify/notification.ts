import { noticeEn } from '../words/notice.en'
import { noticeRu } from '../words/notice.ru'
import { fill, form } from '../words/fill'

/** An option of a card that a button of the notification can choose. */
export interface Choice {
  id: string
  label: string
  token: string
}

/** What a notification tells of (doc/protocol.md §9). `wake` is whatever cannot be read, `outcome` what became of an answer. */
export interface Notice {
  type: 'message' | 'file' | 'card' | 'notice' | 'test' | 'withdraw' | 'wake' | 'outcome'
  /** The message, file or card that it is about. */
  id: string
  ids: string[]
  count: number
  title: string
  body: string
  actions: Choice[]
  /** Of a notice: the name of the device that it is about, where it may be shown. */
  device?: string
  /** What became of the answer, in words. */
  outcome?: string
}

/** A notification as the browser takes it. */
export interface Picture {
  title: string
  options: NotificationOptions & { tag: string; renotify: boolean; actions: { action: string; title: string }[]; data: { notice: Notice } }
}

const types = ['message', 'file', 'card', 'notice', 'test', 'withdraw']
const tables = { en: noticeEn, ru: noticeRu }
export type NoticeLanguage = keyof typeof tables
type Word = keyof typeof noticeEn

const text = (value: unknown) => (typeof value === 'string' ? value : '')
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** readNotice understands what the server sent. */
export function readNotice(data: string): Notice {
  let said: Record<string, unknown> = {}
  try {
    said = Object(JSON.parse(data)) as Record<string, unknown>
  } catch {
    // The browser demands that something is shown all the same.
  }
  const ids = list(said.ids).filter((id): id is string => typeof id === 'string')
  const actions = list(said.actions).map((one) => Object(one) as Record<string, unknown>)
  return {
    type: types.includes(text(said.type)) ? (said.type as Notice['type']) : 'wake',
    id: text(said.id) || (ids.at(-1) ?? ''),
    ids,
    count: typeof said.count === 'number' && said.count > 0 ? Math.floor(said.count) : ids.length,
    title: text(said.title),
    body: text(said.body),
    ...(text(said.device) && { device: text(said.device) }),
    actions: actions.map(({ id, label, token }) => ({ id: text(id), label: text(label), token: text(token) })).filter(({ id, token }) => id && token),
  }
}

/** without gives what is left of a notice when some ids need no attention any more; undefined: nothing. */
export function without(notice: Notice, ids: string[]): Notice | undefined {
  if (!['message', 'file', 'card', 'notice'].includes(notice.type)) return notice
  const left = notice.ids.filter((id) => !ids.includes(id))
  if (left.length === notice.ids.length) return notice
  const over = ids.includes(notice.id)
  if (left.length === 0 || (['card', 'notice'].includes(notice.type) && over)) return undefined
  const count = Math.max(left.length, notice.count - (notice.ids.length - left.length))
  // The words of what is over are not news any more.
  return { ...notice, ids: left, count, ...(over && { type: 'message', id: left.at(-1)!, title: '', body: '' }) }
}

/** tagOf names the notifications that replace one another: messages are one, each card and each notice has its own. */
export function tagOf({ type, id }: Notice): string {
  if (type === 'card' || type === 'outcome') return 'card ' + id
  if (type === 'notice') return 'notice ' + id
  return type === 'message' || type === 'file' ? 'messages' : type
}

/** choices are the options that get a button: allowing once, and denying. */
export function choices(actions: Choice[], most: number): Choice[] {
  const deny = actions.find(({ id }) => id === 'deny')
  const allow = actions.find(({ id }) => id === 'once') ?? actions.find((one) => one !== deny)
  return [allow, deny].filter((one) => one !== undefined).slice(0, most)
}

/** Speech are the words of one language. */
export class Speech {
  constructor(readonly language: NoticeLanguage) {}

  say(word: Word, values: Record<string, string> = {}): string {
    return fill(tables[this.language][word], values)
  }

  /** picture makes a notification out of a notice. `quietly`: it only puts right what is shown. */
  picture(notice: Notice, most: number, quietly = false): Picture {
    const { type, title, body, actions } = notice
    const asks = type === 'card' || type === 'notice'
    const buttons = choices(actions, most).map(({ id, label }) => ({
      action: id, title: id === 'once' ? this.say('noticeAllow') : id === 'deny' ? this.say('noticeDeny') : label || id,
    }))
    return {
      title: title || 'Hermes',
      options: {
        body: this.body(notice), tag: tagOf(notice), lang: body ? '' : this.language, dir: 'auto', icon: './icon-192.png', renotify: !quietly, silent: quietly,
        requireInteraction: asks, actions: buttons, data: { notice },
      },
    }
  }

  private count(name: 'noticeMessages', n: number): string {
    return form(tables[this.language], this.language, name, n)
  }

  private body({ type, body, count, outcome, actions, device }: Notice): string {
    const many = count > 1 ? this.count('noticeMessages', count) : ''
    switch (type) {
      case 'message':
      case 'file':
        // The words are the newest's: of the others it is told that they are there.
        if (body) return many ? `${body}\n${many}` : body
        return type === 'file' && !many ? this.say('noticeFile') : many || this.count('noticeMessages', 1)
      case 'card': {
        // Where the server offers no more than the safe answer, not all of the question is here.
        const unread = actions.length > 0 && actions.every(({ id }) => id === 'deny' || id === 'cancel')
        return [body || this.say('noticeCard'), unread && this.say('noticeReview')].filter(Boolean).join('\n')
      }
      case 'notice':
        return device ? this.say('noticeDevice', { name: device }) : this.say('noticeDevices')
      case 'test':
        return this.say('noticeTest')
      case 'outcome':
        return [outcome, body].filter(Boolean).join('\n')
      default:
        return this.say('noticeWake')
    }
  }
}
