import type { CardEvent, Device, Event, FileEvent, MessageEvent, NoticeEvent, ToolEvent } from '@hermes-mobile/sdk'
import { folded, visible } from '@hermes-mobile/sdk/visible'
import { displayName } from '../view/displayName'
import { announce, showError, showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import type { Conversation } from './conversation'
import { mediaLink } from './address'
import { keys, LINK_LIFETIME, type CardItem, type DeviceItem, type FileItem, type NewItem, type ToolItem } from './item'
import { deviceNoticeText } from './deviceNotice'
import type { Sender } from './sender'

/** A linked file up to this size is downloaded and stored. */
const MAX_STORED_FILE = 32 << 20

/**
 * Receiver puts the server's events into the conversation. An event is handled when it is stored.
 */
export class Receiver {
  constructor(
    private readonly device: Device,
    private readonly conversation: Conversation,
    private readonly sender: Sender,
    private readonly self: string,
  ) {}

  async handle(event: Event): Promise<void> {
    switch (event.type) {
      case 'message':
        return this.message(event)
      case 'file':
        await this.file(keys.agent(event.id), event, {})
        announce(t('fileReceived', { name: displayName(event.filename) }))
        return
      case 'card':
        return this.card(event)
      case 'cardDone':
        return this.conversation.change<CardItem>(keys.card(event.id), {
          done: { option: event.optionId, expired: event.expired, by: event.by && event.by.id !== this.self ? event.by.name || event.by.id : '' },
        })
      case 'echo': {
        const from = event.from.name || event.from.id
        if (event.file) return this.file(keys.mine(event.id), event.file, { mine: true, from })
        await this.conversation.put({
          kind: 'text', key: keys.mine(event.id), id: event.id, mine: true, from, text: event.text, final: true, replyTo: keyOf(this.conversation, event.replyTo),
        })
        return
      }
      case 'notice':
        return this.notice(event)
      case 'receipt':
        return this.sender.onReceipt(event)
      case 'tool':
        return this.tool(event)
      case 'historyLost':
        showToast(t('historyLost'))
        return
      case 'problem':
        showError(event.error)
        return
    }
  }

  private async message(event: MessageEvent): Promise<void> {
    // The approval code has a screen of its own.
    if (!this.device.status.approved && event.final && event.text === this.device.status.pairing) return
    const { id, text, final, interrupted, source, job } = event
    const item: NewItem = { kind: 'text', key: keys.agent(id), id, mine: false, text, final, interrupted, source, job, replyTo: event.replyTo && keys.mine(event.replyTo) }
    if (!final) {
      this.conversation.showSoon(item)
      return
    }
    await this.conversation.put(item)
    announce(text)
    if (event.replyTo) await this.sender.markAnswered(event.replyTo)
  }

  private async file(key: string, event: FileEvent, more: { mine?: boolean; from?: string }): Promise<void> {
    const { id, kind, mime, filename, caption, size, url, data, error, source } = event
    const item: NewItem<FileItem> = {
      kind: 'file', key, id, mine: false, fileKind: kind, mime, name: filename, caption, size: size || data?.length || 0, url, source,
      replyTo: event.replyTo && keys.mine(event.replyTo), ...(error && { error: error.message }), ...more,
    }
    const placed = await this.conversation.put(item, data && new Blob([data as Uint8Array<ArrayBuffer>], { type: mime }))
    void this.fetch(placed as FileItem)
  }

  /** fetchLinks downloads files that an earlier run of the page didn't. */
  fetchLinks(): void {
    for (const item of this.conversation.shownItems()) if (item.kind === 'file') void this.fetch(item)
  }

  /** fetch downloads a linked file before the link expires. The user downloads large files. */
  private async fetch({ key, id, fileKind, mime, name, size, url, at }: FileItem): Promise<void> {
    if (!url || size > MAX_STORED_FILE || Date.now() > at + LINK_LIFETIME) return
    try {
      const bytes = await this.device.download({ type: 'file', id, kind: fileKind, mime, filename: name, caption: '', size, replyTo: '', source: '', url: mediaLink(url) })
      const now = this.conversation.get(key)
      if (now) await this.conversation.put({ ...now, url: '' } as NewItem, new Blob([bytes as Uint8Array<ArrayBuffer>], { type: mime }))
    } catch {
      // The link keeps working until it expires.
    }
  }

  private async card(event: CardEvent): Promise<void> {
    const { id, kind, text, command, description, odd, options } = event
    const key = keys.card(id)
    const known = this.conversation.get(key) as CardItem | undefined
    await this.conversation.put({
      kind: 'card', key, id, mine: false, replyTo: '', cardKind: kind, text, command, description, odd, options, until: Date.now() + event.timeoutSeconds * 1000,
      ...(known?.chosen && { chosen: known.chosen }),
    })
    if (!event.again) announce(t('cardReceived', { text: folded(visible(text)) }))
  }

  private async notice({ id, kind, device, revocable }: NoticeEvent): Promise<void> {
    const item: NewItem<DeviceItem> = { kind: 'device', key: keys.device(id), id, mine: false, replyTo: '', news: kind, device, revocable }
    await this.conversation.put(item)
    announce(deviceNoticeText(item))
  }

  private async tool(event: ToolEvent): Promise<void> {
    const { id, name, state, title, text } = event
    const key = keys.tools(event.turn || id)
    const known = (this.conversation.get(key) as ToolItem | undefined)?.steps ?? []
    const step = { id, name, state, title, text }
    const steps = known.some((s) => s.id === id) ? known.map((s) => (s.id === id ? merge(s, step) : s)) : [...known, step]
    await this.conversation.put({ kind: 'tools', key, id: event.turn || id, mine: false, replyTo: '', steps })
  }
}

/** merge keeps the old title and text if a later update of a tool call has none. */
function merge<T extends { title: string; text: string }>(old: T, step: T): T {
  return { ...step, title: step.title || old.title, text: step.text || old.text }
}

/** keyOf returns the key of the message that is replied to. */
function keyOf(conversation: Conversation, id: string): string {
  if (!id) return ''
  return conversation.get(keys.agent(id)) ? keys.agent(id) : keys.mine(id)
}
