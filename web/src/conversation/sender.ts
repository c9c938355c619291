import type { Device, ReceiptEvent } from '@hermes-mobile/sdk'
import { signal, type Signal } from '@preact/signals'
import { explain } from '../view/explain'
import { complain, inform } from '../view/notice'
import { t } from '../words/words'
import type { DiskStore } from '../keep/store'
import type { Conversation } from './conversation'
import { newID } from './id'
import { kindOf } from './kind'
import { keys, type CardItem, type FileItem, type Fresh, type Item, type TextItem } from './item'

/** A file that the person chose. */
export interface Chosen {
  /** Of the message that it becomes. */
  id: string
  blob: Blob
  name: string
  caption: string
}

/** Sending is what the person says: shown at once, kept until the server has it, sent when there is a connection. */
export class Sending {
  /** How much of a file is up, 0 to 1, by key. */
  readonly uploads = new Map<string, Signal<number>>()
  private readonly answers = new Map<string, string>() // id of the answer to key of the card

  constructor(
    private readonly device: Device,
    private readonly conversation: Conversation,
    private readonly store: DiskStore | undefined,
  ) {}

  /** say sends a text; replyTo is the item that it answers. With steer it is added to the turn that runs. */
  async say(text: string, replyTo?: Item, steer = false): Promise<void> {
    const id = newID()
    await this.sayAs({ kind: 'text', key: keys.mine(id), id, mine: true, text, final: true, replyTo: replyTo?.key ?? '', progress: 'waiting' }, steer)
  }

  private async sayAs(fresh: Fresh<TextItem>, steer = false): Promise<void> {
    const item = this.conversation.show(fresh) as TextItem
    this.store?.along(item.id, item)
    try {
      await this.device.send(item.text, { id: item.id, replyTo: item.replyTo.slice(1), steer })
    } catch (error) {
      await this.failed(item, error)
    }
  }

  /** voice sends a recording. */
  async voice(wav: Uint8Array): Promise<void> {
    const id = newID()
    const blob = new Blob([wav as Uint8Array<ArrayBuffer>], { type: 'audio/wav' })
    const item = await this.keep(
      { kind: 'file', key: keys.mine(id), id, mine: true, fileKind: 'voice', name: 'voice.wav', mime: 'audio/wav', size: blob.size, caption: '', url: '', replyTo: '', progress: 'waiting' },
      blob,
    )
    await this.sendVoice(item, blob)
  }

  private async sendVoice(item: FileItem, blob: Blob): Promise<void> {
    try {
      await this.device.sendVoice('wav', new Uint8Array(await blob.arrayBuffer()), '', { id: item.id })
    } catch (error) {
      await this.failed(item, error)
    }
  }

  /** file sends a file. It is kept here too, and sent again when the page is opened anew in the middle. */
  async file({ id, blob, name, caption }: Chosen): Promise<void> {
    const key = keys.mine(id)
    this.uploads.set(key, signal(0)) // before the item is drawn
    const item = await this.keep(
      {
        kind: 'file', key, id, mine: true, fileKind: kindOf(blob.type), name, mime: blob.type,
        size: blob.size, caption, url: '', replyTo: '', progress: 'waiting',
      },
      blob,
    )
    await this.upload(item, blob)
  }

  /** keep shows a file and stores it. One for which there is no room is sent all the same, from memory. */
  private async keep(fresh: Fresh<FileItem>, blob: Blob): Promise<FileItem> {
    try {
      return (await this.conversation.put(fresh, blob)) as FileItem
    } catch {
      inform(t('notStored'))
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
      await this.failed(item, error)
    }
  }

  /** again sends what failed. */
  async again(item: Item): Promise<void> {
    const fresh = { ...item, progress: 'waiting', error: '' } as Item
    if (fresh.kind === 'text') return this.sayAs(fresh)
    if (fresh.kind !== 'file') return
    const blob = await this.conversation.history.blob(item.key)
    if (!blob) return
    if (fresh.fileKind !== 'voice') this.uploads.set(item.key, signal(0))
    await this.conversation.put(fresh)
    await (fresh.fileKind === 'voice' ? this.sendVoice(fresh, blob) : this.upload(fresh, blob))
  }

  /** answer answers a card, once. */
  async answer(card: CardItem, option: string, text = ''): Promise<void> {
    const now = this.conversation.get(card.key) as CardItem
    if (now.chosen || now.done) return
    this.conversation.show({ ...now, chosen: { option, text } })
    try {
      const { id } = await this.device.answer(card.id, option, text)
      this.answers.set(id, card.key)
      await this.conversation.change<CardItem>(card.key, { chosen: { option, text } })
    } catch (error) {
      await this.conversation.change<CardItem>(card.key, { chosen: undefined })
      complain(error)
    }
  }

  /** receipt notes how something that was sent ended. */
  async receipt({ id, queued, unconfirmed, error }: ReceiptEvent): Promise<void> {
    this.uploads.delete(keys.mine(id))
    const card = this.answers.get(id)
    if (card) {
      this.answers.delete(id)
      if (error) {
        await this.conversation.change<CardItem>(card, { chosen: undefined })
        complain(error)
      }
      return
    }
    await this.conversation.change(keys.mine(id), error ? { progress: 'failed', error: explain(error) } : { progress: unconfirmed ? 'sent' : queued ? 'queued' : 'accepted', error: '' })
  }

  /** answered: the agent has a message for sure when it answers it. */
  async answered(id: string): Promise<void> {
    if (this.conversation.get(keys.mine(id))?.progress === 'queued') await this.conversation.change(keys.mine(id), { progress: 'accepted' })
  }

  /** agentIsBack: what waited for the agent is handed over now. */
  async agentIsBack(): Promise<void> {
    for (const item of this.conversation.all()) {
      if (item.progress === 'queued') await this.conversation.change(item.key, { progress: 'accepted' })
    }
  }

  /** restore sends the files that an earlier life of the page left; texts and voice messages are in the SDK's store. */
  async restore(): Promise<void> {
    const pending = new Set(this.device.pending().map((outgoing) => outgoing.id))
    for (const item of await this.conversation.history.waiting()) {
      if (pending.has(item.id)) continue
      if (item.kind === 'file') void this.again(item)
      else if (item.kind === 'text') void this.sayAs(item)
    }
  }

  private async failed(item: Item, error: unknown): Promise<void> {
    if ((error as Error).name === 'ClosedError') return
    await this.conversation.change(item.key, { progress: 'failed', error: explain(error) })
  }
}
