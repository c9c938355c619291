import { signal } from '@preact/signals'
import type { Attachment, AttachmentStore } from '../storage/attachmentStore'
import type { History } from '../storage/history'
import { keys } from './item'

/**
 * Attachments are the files that the user chose and hasn't sent yet. If the browser has space, they
 * survive a reload, as the draft does.
 */
export class Attachments {
  readonly list = signal<readonly Attachment[]>([])

  constructor(private readonly store: AttachmentStore) {}

  /**
   * load restores the attachments from before a reload, except those that were already being sent.
   */
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

  /** reduce chooses whether the smaller picture is sent. */
  async reduce(id: string, reduce: boolean): Promise<void> {
    this.list.value = this.list.peek().map((other) => (other.id === id ? { ...other, reduce } : other))
    const changed = this.list.peek().find((other) => other.id === id)
    if (changed) await this.save(changed)
  }

  /**
   * take empties the list for a message that is being sent. Call remove for each once the message
   * is stored.
   */
  take(): readonly Attachment[] {
    const taken = this.list.peek()
    this.list.value = []
    return taken
  }

  async remove(id: string): Promise<void> {
    this.list.value = this.list.peek().filter((other) => other.id !== id)
    await this.store.remove(id).catch(() => {}) // it reappears after a reload and can be removed then
  }

  private async save(attachment: Attachment): Promise<void> {
    await this.store.put(attachment).catch(() => {}) // no space: it exists until the page is closed
    if (!this.list.peek().some((other) => other.id === attachment.id)) await this.remove(attachment.id) // it was removed meanwhile
  }
}
