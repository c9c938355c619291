// Made from the Go package frame by `go run ./sdk/ts/generate`. Do not edit.

/** The version of the device protocol that this package implements, as in ready.protocol. */
export const PROTOCOL = 1

/** The reason in an error frame (doc/protocol.md §10). */
export type Code =
  /** AuthFailed means that the token or pairing code is wrong, or the device or user is not allowed. The server closes with 1008. Do not retry. */
  | 'auth_failed'
  /** Unsupported means that the server does not know this frame type. The connection stays open. Do not retry. */
  | 'unsupported_frame'
  /** Forbidden means that this connection may not do that. The device is bound to another token, for example, or the card belongs to another device. Do not retry. */
  | 'forbidden'
  /** TooBig means that a frame, text, file or upload exceeds its limit. Do not retry with the same content. */
  | 'too_big'
  /** BadFrame means that the frame is malformed or contradicts an earlier one. Do not retry with the same content. */
  | 'bad_frame'
  /** DeviceOffline means that the recipient of a delivery is unknown or not approved, is offline while the delivery requires it live, or has a full outbox. Retry later if the device may come back. */
  | 'device_offline'
  /** RateLimited means that the device sends too many requests. Retry after Error.RetryAfter seconds. */
  | 'rate_limited'
  /** NoSpace means that the server has no space for this file: its storage limit is reached, its disk is nearly full, or the device has used its daily quota. Messages without files still work. Retry the file later, after Error.RetryAfter seconds where the server gives them. */
  | 'no_space'
  /** Internal means that the server failed, for example because its disk is full. It stored nothing. Retry later with the same id. */
  | 'internal'

// The close codes the server uses (doc/protocol.md §1), and what each asks of the client.
/** CloseGoingAway means that the server stops or restarts. Reconnect. */
export const CLOSE_GOING_AWAY = 1001
/** CloseNoAccess means that the server denies access. Do not reconnect; tell the user. */
export const CLOSE_NO_ACCESS = 1008
/** CloseTooBig means that a frame was larger than MaxFrame. Reconnect, and do not send that frame again. */
export const CLOSE_TOO_BIG = 1009
/** CloseTryLater means that the server is overloaded, the client reads too slowly, or it sent no hello in time. Reconnect with back-off. Nothing durable is lost. */
export const CLOSE_TRY_LATER = 1013
/** CloseReplaced means that a newer connection of the same device took over. Do not reconnect automatically. */
export const CLOSE_REPLACED = 4409

// Limits of the protocol, in bytes unless noted otherwise (doc/protocol.md §1, §3, §5).
/** one frame on the wire */
export const MAX_FRAME = 16777216
/** a hello on the wire; its sender has not authenticated yet */
export const MAX_HELLO = 4096
/** text of one message, UTF-8 */
export const MAX_TEXT = 1048576
/** one voice message */
export const MAX_AUDIO = 8388608
/** one file, and all unfinished uploads of a device together */
export const MAX_MEDIA = 8388608
/** raw bytes in one part of a file */
export const CHUNK_BYTES = 3145728
/** raw bytes in a part that is not the last */
export const MIN_CHUNK = 4096
/** parts of one file */
export const MAX_PARTS = 2048
/** unfinished uploads of a device */
export const MAX_UPLOADS = 8
/** nesting of a frame, including the frame itself */
export const MAX_DEPTH = 64
/** characters of a message id, device id or user id */
export const MAX_ID = 128
/** characters of a name, platform or app */
export const MAX_NAME = 128
/** code points of one chunk of a reply that is not streamed */
export const MESSAGE_CHUNK = 4000
/** code points of a text or command; a card with more is odd (doc/protocol.md §7) */
export const MAX_SHOWN_CHARS = 2000
/** lines of a text or command; a card with more is odd */
export const MAX_SHOWN_LINES = 30
/** code points of an option's label */
export const MAX_SHOWN_LABEL = 200
/** blank lines in a row; more are folded */
export const MAX_BLANK_LINES = 3
/** spaces or tabs in a row; more are folded */
export const MAX_BLANKS = 40
/** equal marks in a row; more are folded */
export const MAX_SAME_MARKS = 8
/** combining marks on one character; each further one is shown as a mark */
export const MAX_STACK = 4
/** PromptSeconds is the default lifetime of a card, in seconds. */
export const PROMPT_SECONDS = 300
export const SESSION_PREFIX = 'mobile:'

/** Whether the server can reach the agent now; empty before the first ready. While the agent is away (offline), the server queues messages. */
export type AgentState = '' | 'online' | 'away'

/** Device is one installation of an app. ID is 1 to 128 characters of A-Z a-z 0-9 . _ - : @ and must never change. The other fields are optional, for display, and cut to 128 characters. */
export interface Device {
  id: string
  name?: string
  platform?: string
  app?: string
}

/** User owns one or more devices. ID follows the rules of a device id, and defaults to it. */
export interface User {
  id?: string
  name?: string
}

/** Cursor tells what a client has stored: every durable frame up to Seq of the outbox that Epoch names (doc/protocol.md §4). */
export interface Cursor {
  epoch: string
  seq: number
}

/** Hello is the first frame of every connection (doc/protocol.md §2). */
export interface Hello {
  t: 'hello'
  /** the app's or the device's own token */
  token?: string
  /** a pairing code, instead of a token */
  pair?: string
  device: Device
  user?: User
  /** opt-in features: AcceptDelta, AcceptTail, AcceptTool, AcceptNotice */
  accept?: string[]
  /** Resume is the cursor of a client that keeps one. A malformed cursor decodes to one without an epoch, which matches no outbox. */
  resume?: Cursor
}

/** Text is a message to the agent. The client chooses ID, 1 to 128 printable characters, and repeats it when it sends the message again. Without an ID the server cannot detect a duplicate. */
export interface Text {
  t: 'text'
  id?: string
  text: string
  reply_to?: string
  /** add the text to the running turn; otherwise it waits for its own turn */
  steer?: boolean
}

/** Audio is a voice message. Format is wav, ogg, m4a, mp3 or webm. Text is optional: where the app recognized the speech itself, the agent gets it beside the file. */
export interface Audio {
  t: 'audio'
  id?: string
  format: string
  data: Uint8Array
  text?: string
}

/** Media is a file or a part of one, in either direction (doc/protocol.md §5). Up, Kind is image, video, document or audio; down it can also be voice or animation. Down, the last part has Final, and a file over the limit has a URL and no Data. Size is the size of the whole file in bytes. Up it is an optional hint with which the server rejects a file early where it has no space. */
export interface MediaUp {
  t: 'media'
  id?: string
  kind?: string
  mime?: string
  filename?: string
  caption?: string
  size?: number
  part: number
  parts: number
  data?: Uint8Array
}

/** Answer answers a card (t is "prompt"). It holds OptionID, or Text, or OptionID "other" with Text. */
export interface Answer {
  t: 'prompt'
  id?: string
  prompt_id: string
  option_id?: string
  text?: string
}

/** Stop interrupts the running turn. */
export interface Stop {
  t: 'stop'
  id?: string
}

/** Ack acknowledges that the device stored everything up to Seq. Seen: the user saw it. Token: the device stored the token that Ready gave it (doc/protocol.md §8). */
export interface Ack {
  t: 'ack'
  seq: number
  seen?: boolean
  token?: boolean
}

/** Deliver sends a text, a file or both to another device (doc/protocol.md §8). To is a device id, mobile:<device id>, or home. Kind, Mime and Filename describe the file in Data. */
export interface Deliver {
  t: 'deliver'
  id?: string
  to: string
  text?: string
  kind?: string
  mime?: string
  filename?: string
  data?: Uint8Array
  require_live?: boolean
}

/** Ping requests a Pong, for platforms that hide WebSocket control frames. */
export interface Ping {
  t: 'ping'
  id?: string
}

/** Call requests something of the control plane (doc/protocol.md §9). The server answers with a Result. Params is a JSON object; nil is an empty one. */
export interface Call {
  t: 'call'
  id: string
  method: string
  params?: unknown
}

/** Capabilities tells what this connection to the agent supports now. Absent or false means: do not use. Sizes are in bytes. */
export interface Capabilities {
  text: boolean
  audio: boolean
  media: boolean
  prompt: boolean
  edit: boolean
  typing: boolean
  avatar: boolean
  deliver: boolean
  resume: boolean
  accepted: boolean
  stop: boolean
  /** the agent can add a text to the running turn: see Text.Steer */
  steer: boolean
  delta: boolean
  tool: boolean
  media_url: boolean
  push: boolean
  /** other devices share the conversation */
  shared: boolean
  call: string[]
  /** MediaKinds lists the kinds of files that the agent accepts, where it does not accept all: see Media.Kind. */
  media_kinds: string[]
  max_media_bytes: number
  max_frame_bytes: number
  chunk_bytes: number
  max_parts: number
  min_chunk_bytes: number
  max_uploads: number
  prompt_seconds: number
  /** AnswersAt is when a new device may answer cards, and AnswersIn the seconds until then, rounded up. Until then Prompt is false. Both are absent where the device need not wait. */
  answers_at: string
  answers_in: number
}

/** Span tells which durable frames follow a Ready: those from From to To, none where From > To. Lost: the server cannot resume at the client's cursor and sends all it has. */
export interface Span {
  epoch: string
  from: number
  to: number
  lost: boolean
}

/** Ready answers an accepted Hello. Token is set only after pairing: it is the device's own token, which the device stores and uses from then on. */
export interface Ready {
  t: 'ready'
  session: string
  avatar_url: string
  capabilities: Capabilities
  protocol: number
  server: string
  approved: boolean
  agent: AgentState
  resume: Span
  token: string
}

/** CapabilitiesChanged replaces the capabilities and agent state of Ready (t is "capabilities"). */
export interface CapabilitiesChanged {
  t: 'capabilities'
  capabilities: Capabilities
  agent: AgentState
}

/** Approved tells a waiting device that the owner approved it. */
export interface Approved {
  t: 'approved'
}

/** Accepted acknowledges a message: the server stored it, and it will reach the agent. Queued: the agent is offline. */
export interface Accepted {
  t: 'accepted'
  id: string
  duplicate: boolean
  queued: boolean
}

/** Delivered acknowledges a Deliver. Queued: the device is offline and gets it later. */
export interface Delivered {
  t: 'delivered'
  id: string
  queued: boolean
}

/** Chunk numbers the pieces of a long reply. */
export interface Chunk {
  index: number
  total: number
}

/** Message is a reply or a piece of one (doc/protocol.md §4). Without Append, Text is the text of the chunk, or with Edit the whole text so far. With Append, the frame carries only the text added after At UTF-16 code units, or at the end where At is 0. Then Edit has no meaning; leaving it out gives the short form that AcceptTail allows. Final messages have a Seq. */
export interface Message {
  t: 'message'
  id: string
  text: string
  edit: boolean
  append?: string
  at: number
  chunk: Chunk
  final: boolean
  interrupted: boolean
  reply_to: string
  /** SourceCron for scheduled messages, otherwise empty */
  source: string
  /** name of the scheduled job */
  job: string
  seq: number
}

/** Media is a file or a part of one, in either direction (doc/protocol.md §5). Up, Kind is image, video, document or audio; down it can also be voice or animation. Down, the last part has Final, and a file over the limit has a URL and no Data. Size is the size of the whole file in bytes. Up it is an optional hint with which the server rejects a file early where it has no space. */
export interface Media {
  t: 'media'
  id: string
  kind: string
  mime: string
  filename: string
  caption: string
  size: number
  part: number
  parts: number
  final: boolean
  reply_to: string
  source: string
  url: string
  seq: number
  data: Uint8Array
}

/** Option is one button of a card. Style is "primary", "danger" or empty. */
export interface Option {
  id: string
  label: string
  style: string
}

/** Prompt is a card: a question to the user (doc/protocol.md §7). Command and Description come with exec_approval. Odd: it holds characters that do not show as themselves, or is longer than a screen, so the user must look closely. */
export interface Prompt {
  t: 'prompt'
  id: string
  kind: string
  text: string
  command: string
  description: string
  odd: boolean
  options: Option[]
  session: string
  timeout_seconds: number
  expires_at: string
  seq: number
}

/** Peer is a device of a shared conversation (doc/protocol.md §8). Name is for display and may be empty. */
export interface Peer {
  id: string
  name: string
}

/** PromptDone tells how a card ended. PromptID and ID are the same. In a shared conversation, By is the device that answered. */
export interface PromptDone {
  t: 'prompt_done'
  prompt_id: string
  id: string
  option_id: string
  expired: boolean
  by?: Peer
  seq: number
}

/** EchoFile is the file or voice message (kind voice) of an Echo. Size is in bytes. URL is as in Media. */
export interface EchoFile {
  kind: string
  mime: string
  filename: string
  size: number
  url: string
}

/** Echo is a message that another device of a shared conversation sent (doc/protocol.md §8). ID is the id of the message, as replies name it. Text is its text or caption. */
export interface Echo {
  t: 'echo'
  id: string
  from: Peer
  text: string
  reply_to: string
  file?: EchoFile
  seq: number
}

/** NoticeDevice is the device that a Notice is about. The device itself reports Name and Platform, which may be empty. */
export interface NoticeDevice {
  id: string
  name: string
  platform: string
}

/** Notice tells a device what happened to another device of its user (doc/protocol.md §8). Only clients that requested AcceptNotice get it. Revocable: this device may revoke the other one, with the call devices.revoke. */
export interface Notice {
  t: 'notice'
  id: string
  /** DeviceAdded, DeviceJoined, RightsChanged, or one of a later version */
  kind: string
  device: NoticeDevice
  user: string
  /** Conversation is the device whose conversation it joined, with DeviceJoined. */
  conversation: string
  /** Rights lists the rights it got, with RightsChanged: write, answer, call. */
  rights: string[]
  at: string
  revocable: boolean
  seq: number
}

/** Typing tells that the agent works, or with Stop that it is done. */
export interface Typing {
  t: 'typing'
  stop: boolean
}

/** Avatar is the state that the avatar shows: idle, thinking or speaking. */
export interface Avatar {
  t: 'avatar'
  state: string
}

/** Tool tells what the agent is doing, for display (doc/protocol.md §6). State is started, progress, done or failed. */
export interface Tool {
  t: 'tool'
  id: string
  name: string
  state: string
  title: string
  text: string
  turn: string
}

/** Pong answers a Ping with the server's time. */
export interface Pong {
  t: 'pong'
  id: string
  time: string
}

/** CallError says why a call failed. It is also a Go error. */
export interface CallError {
  code: string
  message: string
}

/** Result answers a Call: Result holds JSON, or Err says why the call failed. */
export interface Result {
  t: 'result'
  id: string
  result?: unknown
  error?: CallError
}

/** Error is an error frame, and a Go error. Message is one plain sentence that says what to do. Ref is the id of the frame it is about. RetryAfter is in seconds, zero where it does not apply. */
export interface Error {
  t: 'error'
  code: Code | (string & {})
  message: string
  ref: string
  retry_after: number
}

/** A frame from a device to the server. */
export type Up = Hello | Text | Audio | MediaUp | Answer | Stop | Ack | Deliver | Ping | Call

/** A frame from the server to a device. */
export type Down = Ready | CapabilitiesChanged | Approved | Accepted | Delivered | Message | Media | Prompt | PromptDone | Echo | Notice | Typing | Avatar | Tool | Pong | Result | Error

/** The value of an absent field, 'bytes' for base64, 'any' for any JSON, a list for a list. A field whose name ends in ? stays absent. */
export type Shape = '' | 0 | false | 'bytes' | 'any' | readonly [Shape] | { [name: string]: Shape }

const capabilities = { text: false, audio: false, media: false, prompt: false, edit: false, typing: false, avatar: false, deliver: false, resume: false, accepted: false, stop: false, steer: false, delta: false, tool: false, media_url: false, push: false, shared: false, call: [''], media_kinds: [''], max_media_bytes: 0, max_frame_bytes: 0, chunk_bytes: 0, max_parts: 0, min_chunk_bytes: 0, max_uploads: 0, prompt_seconds: 0, answers_at: '', answers_in: 0 } as const
const span = { epoch: '', from: 0, to: 0, lost: false } as const
const chunk = { index: 0, total: 0 } as const
const option = { id: '', label: '', style: '' } as const
const peer = { id: '', name: '' } as const
const echoFile = { kind: '', mime: '', filename: '', size: 0, url: '' } as const
const noticeDevice = { id: '', name: '', platform: '' } as const
const callError = { code: '', message: '' } as const

/** The frames that the server sends, by their type. */
export const DOWN: { [type in Down['t']]: { [name: string]: Shape } } = {
  ready: { session: '', avatar_url: '', capabilities: capabilities, protocol: 0, server: '', approved: false, agent: '', resume: span, token: '' },
  capabilities: { capabilities: capabilities, agent: '' },
  approved: {},
  accepted: { id: '', duplicate: false, queued: false },
  delivered: { id: '', queued: false },
  message: { id: '', text: '', edit: false, 'append?': '', at: 0, chunk: chunk, final: false, interrupted: false, reply_to: '', source: '', job: '', seq: 0 },
  media: { id: '', kind: '', mime: '', filename: '', caption: '', size: 0, part: 0, parts: 0, final: false, reply_to: '', source: '', url: '', seq: 0, data: 'bytes' },
  prompt: { id: '', kind: '', text: '', command: '', description: '', odd: false, options: [option], session: '', timeout_seconds: 0, expires_at: '', seq: 0 },
  prompt_done: { prompt_id: '', id: '', option_id: '', expired: false, 'by?': peer, seq: 0 },
  echo: { id: '', from: peer, text: '', reply_to: '', 'file?': echoFile, seq: 0 },
  notice: { id: '', kind: '', device: noticeDevice, user: '', conversation: '', rights: [''], at: '', revocable: false, seq: 0 },
  typing: { stop: false },
  avatar: { state: '' },
  tool: { id: '', name: '', state: '', title: '', text: '', turn: '' },
  pong: { id: '', time: '' },
  result: { id: '', 'result?': 'any', 'error?': callError },
  error: { code: '', message: '', ref: '', retry_after: 0 },
}
