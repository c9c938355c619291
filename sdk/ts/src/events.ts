import type { Echo, Notice, NoticeDevice, Option, Peer } from './frames.js'
import type { Status } from './status.js'

/**
 * A reply as it stands: redraw the one with this id. Until final, text is what there is so far and a later event replaces it;
 * such steps are live only, and a slow loop sees the newest. The final one is durable.
 */
export interface MessageEvent {
  type: 'message'
  id: string
  text: string
  final: boolean
  /** The turn was cut, and this is what there was. */
  interrupted: boolean
  /** Id of the message that began the turn. */
  replyTo: string
  /** `cron` for a scheduled message, else empty. */
  source: string
  /** The scheduled job's name. */
  job: string
}

/**
 * A complete file from the agent: data holds it, or url names where Device.download fetches it, or error says why it could not
 * be taken. filename is as the server sent it. Durable.
 */
export interface FileEvent {
  type: 'file'
  id: string
  /** image, voice, video, document, animation, audio, or one not known yet. */
  kind: string
  mime: string
  filename: string
  caption: string
  /** Bytes; 0 where not known. */
  size: number
  replyTo: string
  source: string
  /** Empty where data holds the file. */
  url: string
  data?: Uint8Array
  error?: Error
}

/**
 * A question card, to be answered with Device.answer until cardDone. again: it was shown before, after a reconnect for example,
 * and the seconds left are new. It is the same card when the id is.
 */
export interface CardEvent {
  type: 'card'
  id: string
  /** exec_approval, slash_confirm, clarify, or one not known yet. */
  kind: string
  text: string
  /** With exec_approval. */
  command: string
  description: string
  /**
   * It holds characters that do not show as themselves, or is longer than a screen: show it with `@hermes-mobile/sdk/visible`, and let nobody
   * allow it who has not seen its end. Servers that do not say so exist, so ask `odd` of that module, too.
   */
  odd: boolean
  options: Option[]
  timeoutSeconds: number
  /** By the server's clock, RFC 3339. */
  expiresAt: string
  again: boolean
}

/** How a card ended. optionId is what was done, which may differ from what was asked. Durable. */
export interface CardDoneEvent {
  type: 'cardDone'
  id: string
  optionId: string
  expired: boolean
  /** In a shared conversation, the device that answered. */
  by?: Peer
}

/** What another device of a shared conversation said: show it as the person's own. Durable. */
export interface EchoEvent {
  type: 'echo'
  id: string
  from: Peer
  text: string
  replyTo: string
  /** Its file or voice message, for Device.download. */
  file?: FileEvent
}

/**
 * Another device of the user is new, has joined a conversation, or has more rights; with Config.notices only. Show it to a person.
 * Where it is revocable, Device.revokeDevice shuts that device out. Durable.
 */
export interface NoticeEvent {
  type: 'notice'
  id: string
  /** device_added, device_joined, rights_changed, or one not known yet. */
  kind: string
  device: NoticeDevice
  user: string
  /** With device_joined, the device whose conversation it has joined. */
  conversation: string
  /** With rights_changed, the rights that it was given: write, answer, call. */
  rights: string[]
  /** By the server's clock, RFC 3339. */
  at: string
  revocable: boolean
}

/** The end of something that was sent: the server has it, or error says why it never will. */
export interface ReceiptEvent {
  type: 'receipt'
  id: string
  /** The server had it already. */
  duplicate: boolean
  /** The agent is away and gets it later. */
  queued: boolean
  /** This server gives no receipts: it was written to the connection, no more is known. */
  unconfirmed: boolean
  error?: Error
}

/** What the indicator and the avatar show. It goes off by itself when signs of work stop or the link drops. */
export interface ActivityEvent {
  type: 'activity'
  typing: boolean
  /** idle, thinking or speaking. */
  avatar: string
}

/** What the agent is doing; with Config.tools only. */
export interface ToolEvent {
  type: 'tool'
  id: string
  name: string
  /** started, progress, done or failed. */
  state: string
  title: string
  text: string
  turn: string
}

/** The status has changed. A slow loop sees the newest only. */
export interface StatusEvent {
  type: 'status'
  status: Status
}

/**
 * The server could not go on from where this device was. What it still has follows, some of it perhaps seen before; what fell
 * between is gone.
 */
export interface HistoryLostEvent {
  type: 'historyLost'
}

/** An error that belongs to nothing that was sent: an error frame without ref, a frame that could not be read, a Store that failed. */
export interface ProblemEvent {
  type: 'problem'
  error: Error
}

/** A frame of a type this version does not know, for an app that does. */
export interface UnknownEvent {
  type: 'unknown'
  frame: Record<string, unknown>
}

/** What comes out of Device.events and Device.on. Ignore the types you do not know. */
export type Event =
  | MessageEvent
  | FileEvent
  | CardEvent
  | CardDoneEvent
  | EchoEvent
  | NoticeEvent
  | ReceiptEvent
  | ActivityEvent
  | ToolEvent
  | StatusEvent
  | HistoryLostEvent
  | ProblemEvent
  | UnknownEvent

/** The event of a type. */
export type EventOf<T extends Event['type']> = Extract<Event, { type: T }>

/** echoEvent brings an echo into the form for apps. */
export function echoEvent(e: Echo): EchoEvent {
  const event: EchoEvent = { type: 'echo', id: e.id, from: e.from, text: e.text, replyTo: e.reply_to }
  if (e.file) {
    event.file = { type: 'file', id: e.id, ...e.file, caption: e.text, replyTo: e.reply_to, source: '' }
  }
  return event
}

/** noticeEvent brings a notice into the form for apps. */
export function noticeEvent({ t: _, seq: __, ...notice }: Notice): NoticeEvent {
  return { type: 'notice', ...notice }
}
