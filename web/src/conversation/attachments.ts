import { signal } from '@preact/signals'
import type { Attachment, AttachmentStore } from '../storage/attachmentStore'
import type { History } from '../storage/history'
import { keys } from './item'

/** Attachments are the files that were chosen and not sent yet. Like the words they stay when the page is closed, where the browser has room. */
export class Attachments {
  readonly list = signal<readonly Attachment[]>([])

  constructor(private readonly store: AttachmentStore) {}

  /** load shows what an earlier life of the page left, except what it had begun to send. */
  async load(history: History): Promise<void> {
    for (const attachment of await this.store.load()) {
      if (await history.get(keys.mine(attachment.id))) await this.remove(attachment.id)
      else this.list.value = [...this.list.peek(), attachment]
    }
  }

  async add(attachment: Attachment): Promise<void> {
    this.list.value = [...this.list.peek(), attachment]
    await this.save(attachment)
  }

  /** reduce says whether the smaller picture is sent. */
  async reduce(id: string, reduce: boolean): Promise<void> {
    this.list.value = this.list.peek().map((other) => (other.id === id ? { ...other, reduce } : other))
    const changed = this.list.peek().find((other) => other.id === id)
    if (changed) await this.save(changed)
  }

  /** take empties the list for a message that is being sent. Each is forgotten with remove, once the message is kept in its place. */
  take(): readonly Attachment[] {
    const taken = this.list.peek()
    this.list.value = []
    return taken
  }

  async remove(id: string): Promise<void> {
    this.list.value = this.list.peek().filter((other) => other.id !== id)
    await this.store.remove(id).catch(() => {}) // it comes back with the next life, and can be taken off again
  }

  private async save(attachment: Attachment): Promise<void> {
    await this.store.put(attachment).catch(() => {}) // no room: it is here as long as this page is
    if (!this.list.peek().some((other) => other.id === attachment.id)) await this.remove(attachment.id) // taken off meanwhile
  }
}
