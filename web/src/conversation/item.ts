import type { frame } from '@hermes-mobile/sdk'

/** How far something of one's own got. `sent`: written, and this server gives no receipts. */
export type Progress = 'waiting' | 'sent' | 'accepted' | 'queued' | 'failed'

interface Base {
  /** Names it in the history: who said it and the id, see keys. */
  key: string
  id: string
  /** Its place. */
  n: number
  /** When it came or was written, by this device's clock. */
  at: number
  /** Said by the person, here or on another device. */
  mine: boolean
  replyTo: string
  /** The other device of a shared conversation that said it. */
  from?: string
  /** Of what was said here. */
  progress?: Progress
  error?: string
  /** `cron` for a scheduled message. */
  source?: string
  job?: string
  /** Of the gateway's history: it is not kept here, and the server knows nothing by this id. */
  fromGateway?: boolean
}

export interface TextItem extends Base {
  kind: 'text'
  text: string
  final: boolean
  interrupted?: boolean
}

/** A link of the server works for an hour. */
export const LINK_LIFETIME = 3_600_000

export interface FileItem extends Base {
  kind: 'file'
  /** image, voice, video, document, animation, audio, or one not known yet. */
  fileKind: string
  name: string
  mime: string
  size: number
  caption: string
  /** A link, good for an hour from `at`; empty where the bytes are kept here. */
  url: string
}

export interface CardItem extends Base {
  kind: 'card'
  cardKind: string
  text: string
  command: string
  description: string
  /** The server says that it needs a closer look. */
  odd?: boolean
  options: frame.Option[]
  /** When nobody's answer counts any more, by this device's clock. */
  until: number
  /** What was chosen here, before the server confirmed it. */
  chosen?: { option: string; text: string }
  done?: { option: string; expired: boolean; by: string }
}

export interface ToolStep {
  id: string
  name: string
  state: string
  title: string
  text: string
}

/** What the agent did in a turn. */
export interface ToolItem extends Base {
  kind: 'tools'
  steps: ToolStep[]
}

/** News of another device of the person: it is new, has joined a conversation, or has more rights. */
export interface DeviceItem extends Base {
  kind: 'device'
  /** device_added, device_joined, rights_changed, or one not known yet. */
  news: string
  device: frame.NoticeDevice
  revocable: boolean
  /** It was revoked from here. */
  revoked?: boolean
}

export type Item = TextItem | FileItem | CardItem | ToolItem | DeviceItem

/** A new item has no place yet. */
export type NewItem<T extends Item = Item> = T extends Item ? Omit<T, 'n' | 'at'> & { n?: number; at?: number } : never

/** The ids of two sides are made apart from one another, and may be the same. */
export const keys = {
  mine: (id: string) => 'm' + id,
  agent: (id: string) => 'a' + id,
  card: (id: string) => 'c' + id,
  tools: (turn: string) => 't' + turn,
  device: (notice: string) => 'd' + notice,
  history: (id: number) => 'h' + id,
}

/** words gives what an item says, for a quote, the clipboard and a screen reader. */
export function itemText(item: Item): string {
  switch (item.kind) {
    case 'text':
    case 'card':
      return item.text
    case 'file':
      return item.caption || item.name
    case 'device':
      return item.device.name || item.device.id
    case 'tools':
      return item.steps.map((step) => step.title || step.name).join(', ')
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)
const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : [])

/**
 * restored gives an item as the rest of the page expects it, whatever stands on the disk: an older version, or a fault, may have written
 * it, and one bad row must not hide the others.
 */
export function itemFromRow(row: unknown): Item {
  const from = (typeof row === 'object' && row !== null ? row : {}) as Record<string, unknown>
  const base = { ...from, key: text(from.key), id: text(from.id), n: number(from.n), at: Math.min(Math.max(number(from.at), 0), 8.64e15), mine: from.mine === true, replyTo: text(from.replyTo) }
  switch (from.kind) {
    case 'file':
      return { ...base, kind: 'file', fileKind: text(from.fileKind), name: text(from.name), mime: text(from.mime), size: number(from.size), caption: text(from.caption), url: text(from.url) }
    case 'card':
      return {
        ...base, kind: 'card', cardKind: text(from.cardKind), text: text(from.text), command: text(from.command), description: text(from.description), until: number(from.until),
        options: list(from.options).map((one) => ({ id: text(one.id), label: text(one.label), style: text(one.style) })),
      }
    case 'device': {
      const device = list([from.device])[0] ?? {}
      return { ...base, kind: 'device', news: text(from.news), device: { ...device, id: text(device.id), name: text(device.name), platform: text(device.platform) }, revocable: from.revocable === true }
    }
    case 'tools':
      return { ...base, kind: 'tools', steps: list(from.steps).map((one) => ({ id: text(one.id), name: text(one.name), state: text(one.state), title: text(one.title), text: text(one.text) })) }
    default:
      return { ...base, kind: 'text', text: text(from.text), final: from.final !== false }
  }
}
