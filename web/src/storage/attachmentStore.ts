import type { Attachment } from '../talk/attachments'
import { done, result } from './database'

/** Keys of what is attached, behind one another in the order it was attached. */
const key = (n: number) => ['attached', n]
const all = () => IDBKeyRange.bound(['attached'], ['attached', []])

/** An attachment on the disk. */
interface Kept extends Attachment {
  n: number
}

/** AttachedStore keeps the files of a message that is not sent yet. Without a database it keeps nothing. */
export class AttachedStore {
  private next = 1
  private readonly places = new Map<string, number>() // by id

  constructor(private readonly db: IDBDatabase | undefined) {}

  async load(): Promise<Attachment[]> {
    if (!this.db) return []
    const found = (await result(this.db.transaction('state').objectStore('state').getAll(all()))) as Kept[]
    for (const { id, n } of found) this.places.set(id, n)
    this.next = (found.at(-1)?.n ?? 0) + 1
    return found.map(({ n: _, ...attachment }) => attachment)
  }

  async put(attachment: Attachment): Promise<void> {
    const n = this.places.get(attachment.id) ?? this.next++
    this.places.set(attachment.id, n)
    await this.write((state) => state.put({ ...attachment, n } satisfies Kept, key(n)))
  }

  async remove(id: string): Promise<void> {
    const n = this.places.get(id)
    this.places.delete(id)
    if (n !== undefined) await this.write((state) => state.delete(key(n)))
  }

  private async write(act: (state: IDBObjectStore) => void): Promise<void> {
    if (!this.db) return
    const tx = this.db.transaction('state', 'readwrite')
    act(tx.objectStore('state'))
    await done(tx)
  }
}
