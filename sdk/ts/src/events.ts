import type { Echo, Notice, NoticeDevice, Option, Peer } from './frames.js'
import type { Status } from './status.js'

/**
 * The current state of a reply: redraw the one with this id. Until final, text is the text so far, and a later event replaces it.
 * Such edits are live only, and a slow loop sees only the newest. The final one is durable.
 */
export interface MessageEvent {
  type: 'message'
  id: string
  text: string
  final: boolean
  /** The turn ended early, and this is the text so far. */
  interrupted: boolean
  /** The id of the message that began the turn. */
  replyTo: string
  /** `cron` for a scheduled message, otherwise empty. */
  source: string
  /** The name of the scheduled job. */
  job: string
}

/**
 * A complete file from the agent. Either data holds the content, or Device.download fetches it from url, or error says why the
 * device did not accept it. The server chose filename. Durable.
 */
export interface FileEvent {
  type: 'file'
  id: string
  /** image, voice, video, document, animation, audio, or one of a later version. */
  kind: string
  mime: string
  filename: string
  caption: string
  /** In bytes; 0 where unknown. */
  size: number
  replyTo: string
  source: string
  /** Empty where data holds the file. */
  url: string
  data?: Uint8Array
  error?: Error
}

/**
 * A card. The user answers it with Device.answer until cardDone. again marks a card that came before, for example before a
 * reconnect; its remaining seconds are new.
 */
export interface CardEvent {
  type: 'card'
  id: string
  /** exec_approval, slash_confirm, clarify, or one of a later version. */
  kind: string
  text: string
  /** With exec_approval. */
  command: string
  description: string
  /**
   * The card holds characters that do not show as themselves, or is longer than a screen. Show it with `@hermes-mobile/sdk/visible`, and
   * let only users allow it who saw its end. Older servers do not set this, so call `odd` of that module, too.
   */
  odd: boolean
  options: Option[]
  timeoutSeconds: number
  /** By the server's clock, RFC 3339. */
  expiresAt: string
  again: boolean
}

/** How a card ended. optionId is the option that took effect, which may differ from the answer. Durable. */
export interface CardDoneEvent {
  type: 'cardDone'
  id: string
  optionId: string
  expired: boolean
  /** In a shared conversation, the device that answered. */
  by?: Peer
}

/** A message that another device of a shared conversation sent. Show it as the user's own. Durable. */
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
 * Another device of the user is new, joined a conversation, or got more rights. It needs Config.notices. Show it to the user.
 * Where it is revocable, Device.revokeDevice revokes that device. Durable.
 */
export interface NoticeEvent {
  type: 'notice'
  id: string
  /** device_added, device_joined, rights_changed, or one of a later version. */
  kind: string
  device: NoticeDevice
  user: string
  /** With device_joined, the device whose conversation it joined. */
  conversation: string
  /** With rights_changed, the rights it got: write, answer, call. */
  rights: string[]
  /** By the server's clock, RFC 3339. */
  at: string
  revocable: boolean
}

/** The result of sending a message, a file or an answer: the server acknowledged it, or error says why it never will. */
export interface ReceiptEvent {
  type: 'receipt'
  id: string
  /** The server already had it. */
  duplicate: boolean
  /** The agent is offline and gets it later. */
  queued: boolean
  /** The server sends no acks: the device wrote it to the connection and knows no more. */
  unconfirmed: boolean
  error?: Error
}

/** The state of the typing indicator and the avatar. Both turn off when signs of work stop or the connection drops. */
export interface ActivityEvent {
  type: 'activity'
  typing: boolean
  /** idle, thinking or speaking. */
  avatar: string
}

/** What the agent is doing. It needs Config.tools. */
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

/** The status changed. A slow loop sees only the newest. */
export interface StatusEvent {
  type: 'status'
  status: Status
}

/**
 * The server could not resume where this device was. It sends what it still has, so some history may be missing or repeated.
 */
export interface HistoryLostEvent {
  type: 'historyLost'
}

/** An error that concerns no message of the app: an error frame without a ref, a malformed frame, or a failed Store. */
export interface ProblemEvent {
  type: 'problem'
  error: Error
}

/** A frame of a type that this version does not know, for an app that does. */
export interface UnknownEvent {
  type: 'unknown'
  frame: Record<string, unknown>
}

/** An event of Device.events and Device.on. Ignore types that you do not know. */
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

/** echoEvent converts an echo frame into an event. */
export function echoEvent(e: Echo): EchoEvent {
  const event: EchoEvent = { type: 'echo', id: e.id, from: e.from, text: e.text, replyTo: e.reply_to }
  if (e.file) {
    event.file = { type: 'file', id: e.id, ...e.file, caption: e.text, replyTo: e.reply_to, source: '' }
  }
  return event
}

/** noticeEvent converts a notice frame into an event. */
export function noticeEvent({ t: _, seq: __, ...notice }: Notice): NoticeEvent {
  return { type: 'notice', ...notice }
}
