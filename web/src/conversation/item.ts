import type { frame } from '@hermes-mobile/sdk'

/**
 * Progress is the delivery state of a sent item. `sent`: written to a server that sends no acks.
 */
export type Progress = 'waiting' | 'sent' | 'accepted' | 'queued' | 'failed'

interface Base {
  /** Identifies it in the history: see keys. */
  key: string
  id: string
  /** Its position. */
  n: number
  /** When it arrived or was written, by this device's clock. */
  at: number
  /** Written by the user, here or on another device. */
  mine: boolean
  replyTo: string
  /** The other device of a shared conversation that it came from. */
  from?: string
  /** Of an item that was sent from here. */
  progress?: Progress
  error?: string
  /** `cron` for a scheduled message. */
  source?: string
  job?: string
  /**
   * Loaded from the gateway's history: it isn't stored here, and the server doesn't know its id.
   */
  fromGateway?: boolean
}

export interface TextItem extends Base {
  kind: 'text'
  text: string
  final: boolean
  interrupted?: boolean
}

/** A link to a file on the server is valid for an hour. */
export const LINK_LIFETIME = 3_600_000

export interface FileItem extends Base {
  kind: 'file'
  /** image, voice, video, document, animation, audio, or an unknown kind. */
  fileKind: string
  name: string
  mime: string
  size: number
  caption: string
  /** A link, valid for an hour from `at`. Empty if the bytes are stored here. */
  url: string
}

export interface CardItem extends Base {
  kind: 'card'
  cardKind: string
  text: string
  command: string
  description: string
  /** The server asks for a closer look. */
  odd?: boolean
  options: frame.Option[]
  /** When the card expires, by this device's clock. */
  until: number
  /** The answer from here, before the server confirmed it. */
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

/** The tool calls of a turn. */
export interface ToolItem extends Base {
  kind: 'tools'
  steps: ToolStep[]
}

/**
 * A notice about another device of the user: it is new, joined a conversation, or got more rights.
 */
export interface DeviceItem extends Base {
  kind: 'device'
  /** device_added, device_joined, rights_changed, or an unknown kind. */
  news: string
  device: frame.NoticeDevice
  revocable: boolean
  /** It was revoked from here. */
  revoked?: boolean
}

export type Item = TextItem | FileItem | CardItem | ToolItem | DeviceItem

/** A new item has no position yet. */
export type NewItem<T extends Item = Item> = T extends Item ? Omit<T, 'n' | 'at'> & { n?: number; at?: number } : never

/** Client and agent choose ids independently, so the prefixes keep them apart. */
export const keys = {
  mine: (id: string) => 'm' + id,
  agent: (id: string) => 'a' + id,
  card: (id: string) => 'c' + id,
  tools: (turn: string) => 't' + turn,
  device: (notice: string) => 'd' + notice,
  history: (id: number) => 'h' + id,
}

/** itemText returns the text of an item for a quote, the clipboard, or a screen reader. */
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
 * itemFromRow converts a stored row to a valid item. An older version or a fault may have written
 * the row, and one bad row must not hide the others.
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
