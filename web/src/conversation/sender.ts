import type { Device, ReceiptEvent } from '@hermes-mobile/sdk'
import { signal, type Signal } from '@preact/signals'
import { errorText } from '../view/errorText'
import { showError, showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import type { DeviceStore } from '../storage/deviceStore'
import type { Conversation } from './conversation'
import { newID } from './id'
import { mediaKind } from './mediaKind'
import { keys, type CardItem, type FileItem, type NewItem, type Item, type TextItem } from './item'

/** A file to send. */
export interface OutgoingFile {
  /** The id of its message. */
  id: string
  blob: Blob
  name: string
  caption: string
}

/**
 * Sender sends the user's messages: it shows them immediately and keeps them until the server has
 * them.
 */
export class Sender {
  /** The uploaded fraction of a file, 0 to 1, by key. */
  readonly uploads = new Map<string, Signal<number>>()
  private readonly answers = new Map<string, string>() // id of the answer to key of the card

  constructor(
    private readonly device: Device,
    private readonly conversation: Conversation,
    private readonly deviceStore: DeviceStore | undefined,
  ) {}

  /**
   * sendText sends a text. replyTo is the item that it replies to. With steer it joins the running
   * turn.
   */
  async sendText(text: string, replyTo?: Item, steer = false): Promise<void> {
    const id = newID()
    await this.submitText({ kind: 'text', key: keys.mine(id), id, mine: true, text, final: true, replyTo: replyTo?.key ?? '', progress: 'waiting' }, steer)
  }

  private async submitText(fresh: NewItem<TextItem>, steer = false): Promise<void> {
    const item = this.conversation.show(fresh) as TextItem
    this.deviceStore?.storeWith(item.id, item)
    try {
      await this.device.send(item.text, { id: item.id, replyTo: item.replyTo.slice(1), steer })
    } catch (error) {
      await this.markFailed(item, error)
    }
  }

  /** sendRecording sends a voice message. */
  async sendRecording(wav: Uint8Array): Promise<void> {
    const id = newID()
    const blob = new Blob([wav as Uint8Array<ArrayBuffer>], { type: 'audio/wav' })
    const item = await this.store(
      { kind: 'file', key: keys.mine(id), id, mine: true, fileKind: 'voice', name: 'voice.wav', mime: 'audio/wav', size: blob.size, caption: '', url: '', replyTo: '', progress: 'waiting' },
      blob,
    )
    await this.sendVoice(item, blob)
  }

  private async sendVoice(item: FileItem, blob: Blob): Promise<void> {
    try {
      await this.device.sendVoice('wav', new Uint8Array(await blob.arrayBuffer()), '', { id: item.id })
    } catch (error) {
      await this.markFailed(item, error)
    }
  }

  /**
   * sendFile sends a file. It is stored here too, and sent again if the page closes during the
   * upload.
   */
  async sendFile({ id, blob, name, caption }: OutgoingFile): Promise<void> {
    const key = keys.mine(id)
    this.uploads.set(key, signal(0)) // before the item is drawn
    const item = await this.store(
      {
        kind: 'file', key, id, mine: true, fileKind: mediaKind(blob.type), name, mime: blob.type,
        size: blob.size, caption, url: '', replyTo: '', progress: 'waiting',
      },
      blob,
    )
    await this.upload(item, blob)
  }

  /** store shows a file and stores it. If there is no space, it is still sent, from memory. */
  private async store(fresh: NewItem<FileItem>, blob: Blob): Promise<FileItem> {
    try {
      return (await this.conversation.put(fresh, blob)) as FileItem
    } catch {
      showToast(t('messageNotSaved'))
      return this.conversation.get(fresh.key) as FileItem
    }
  }

  private async upload(item: FileItem, blob: Blob): Promise<void> {
    const progress = this.uploads.get(item.key)
    try {
      const { name, mime, caption, id } = item
      await this.device.sendFile({ data: blob, name, mime, caption, progress: (sent, total) => progress && (progress.value = sent / total) }, { id })
    } catch (error) {
      this.uploads.delete(item.key)
      await this.markFailed(item, error)
    }
  }

  /** retry sends a failed item again. */
  async retry(item: Item): Promise<void> {
    const fresh = { ...item, progress: 'waiting', error: '' } as Item
    if (fresh.kind === 'text') return this.submitText(fresh)
    if (fresh.kind !== 'file') return
    const blob = await this.conversation.history.blob(item.key)
    if (!blob) return
    if (fresh.fileKind !== 'voice') this.uploads.set(item.key, signal(0))
    await this.conversation.put(fresh)
    await (fresh.fileKind === 'voice' ? this.sendVoice(fresh, blob) : this.upload(fresh, blob))
  }

  /** answerCard answers a card, once. */
  async answerCard(card: CardItem, option: string, text = ''): Promise<void> {
    const now = this.conversation.get(card.key) as CardItem
    if (now.chosen || now.done) return
    this.conversation.show({ ...now, chosen: { option, text } })
    try {
      const { id } = await this.device.answer(card.id, option, text)
      this.answers.set(id, card.key)
      await this.conversation.change<CardItem>(card.key, { chosen: { option, text } })
    } catch (error) {
      await this.conversation.change<CardItem>(card.key, { chosen: undefined })
      showError(error)
    }
  }

  /** onReceipt handles the server's ack or rejection of a sent item. */
  async onReceipt({ id, queued, unconfirmed, error }: ReceiptEvent): Promise<void> {
    this.uploads.delete(keys.mine(id))
    const card = this.answers.get(id)
    if (card) {
      this.answers.delete(id)
      if (error) {
        await this.conversation.change<CardItem>(card, { chosen: undefined })
        showError(error)
      }
      return
    }
    await this.conversation.change(keys.mine(id), error ? { progress: 'failed', error: errorText(error) } : { progress: unconfirmed ? 'sent' : queued ? 'queued' : 'accepted', error: '' })
  }

  /** markAnswered notes that the agent has a message, because it replied to it. */
  async markAnswered(id: string): Promise<void> {
    if (this.conversation.get(keys.mine(id))?.progress === 'queued') await this.conversation.change(keys.mine(id), { progress: 'accepted' })
  }

  /** onAgentOnline notes that the messages that waited for the agent are being delivered. */
  async onAgentOnline(): Promise<void> {
    for (const item of this.conversation.shownItems()) {
      if (item.progress === 'queued') await this.conversation.change(item.key, { progress: 'accepted' })
    }
  }

  /**
   * resume sends the files that an earlier run of the page left. Texts and voice messages are in
   * the SDK's store.
   */
  async resume(): Promise<void> {
    const pending = new Set(this.device.pending().map((outgoing) => outgoing.id))
    for (const item of await this.conversation.history.waiting()) {
      if (pending.has(item.id)) continue
      if (item.kind === 'file') void this.retry(item)
      else if (item.kind === 'text') void this.submitText(item)
    }
  }

  private async markFailed(item: Item, error: unknown): Promise<void> {
    if ((error as Error).name === 'ClosedError') return
    await this.conversation.change(item.key, { progress: 'failed', error: errorText(error) })
  }
}
