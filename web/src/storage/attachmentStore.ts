import { done, result } from './database'

export interface FileContent {
  blob: Blob
  name: string
}

/** Attachment is a file that waits for its message to be sent. */
export interface Attachment extends FileContent {
  /** The id of its message, so that it is sent once. */
  id: string
  /** A smaller version of a picture, if that saves enough. */
  smaller?: FileContent
  /** Send the smaller version. */
  reduce: boolean
}

/** The keys of the attachments sort in the order in which they were attached. */
const key = (n: number) => ['attached', n]
const all = () => IDBKeyRange.bound(['attached'], ['attached', []])

/** An attachment in storage. */
interface StoredAttachment extends Attachment {
  n: number
}

/**
 * AttachmentStore stores the files of a message that isn't sent yet. Without a database it stores
 * nothing.
 */
export class AttachmentStore {
  private next = 1
  private readonly positions = new Map<string, number>() // by id

  constructor(private readonly db: IDBDatabase | undefined) {}

  async load(): Promise<Attachment[]> {
    if (!this.db) return []
    const found = (await result(this.db.transaction('state').objectStore('state').getAll(all()))) as StoredAttachment[]
    for (const { id, n } of found) this.positions.set(id, n)
    this.next = (found.at(-1)?.n ?? 0) + 1
    return found.map(({ n: _, ...attachment }) => attachment)
  }

  async put(attachment: Attachment): Promise<void> {
    const n = this.positions.get(attachment.id) ?? this.next++
    this.positions.set(attachment.id, n)
    await this.write((state) => state.put({ ...attachment, n } satisfies StoredAttachment, key(n)))
  }

  async remove(id: string): Promise<void> {
    const n = this.positions.get(id)
    this.positions.delete(id)
    if (n !== undefined) await this.write((state) => state.delete(key(n)))
  }

  private async write(act: (state: IDBObjectStore) => void): Promise<void> {
    if (!this.db) return
    const tx = this.db.transaction('state', 'readwrite')
    act(tx.objectStore('state'))
    await done(tx)
  }
}
