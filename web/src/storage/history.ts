import { itemFromRow, type Item } from '../conversation/item'
import { done, result } from './database'

/**
 * History stores the items of the conversation. Without a database, or space in it, it keeps files
 * in memory only.
 */
export class History {
  private readonly memory = new Map<string, Blob>()

  constructor(private readonly db: IDBDatabase | undefined) {}

  /** put stores an item and the bytes of its file, and returns when both are safe. */
  async put(item: Item, blob?: Blob): Promise<void> {
    if (blob) this.memory.set(item.key, blob)
    if (!this.db) return
    const tx = this.db.transaction(blob ? ['items', 'blobs'] : ['items'], 'readwrite', { durability: 'strict' })
    tx.objectStore('items').put(item)
    if (blob) tx.objectStore('blobs').put(blob, item.key)
    await done(tx)
    this.memory.delete(item.key)
  }

  async get(key: string): Promise<Item | undefined> {
    if (!this.db) return undefined
    const row: unknown = await result(this.db.transaction('items').objectStore('items').get(key))
    return row === undefined ? undefined : itemFromRow(row)
  }

  /** before returns up to `count` items before position n, oldest first. */
  async before(n: number, count: number): Promise<Item[]> {
    if (!this.db) return []
    const index = this.db.transaction('items').objectStore('items').index('n')
    const older = IDBKeyRange.upperBound(n, true)
    // Find the first row, then read all of them at once. A cursor over each row takes many times as
    // long.
    const cursor = await result(index.openKeyCursor(older, 'prev'))
    if (!cursor) return []
    if (count === 1) return [itemFromRow(await result(index.get(cursor.key)))]
    const { request } = cursor
    cursor.advance(count - 1)
    const begin = await result(request)
    const rows: unknown[] = await result(index.getAll(begin ? IDBKeyRange.bound(begin.key, n, false, true) : older))
    return rows.map(itemFromRow)
  }

  /** waiting returns the items that have no ack yet. */
  async waiting(): Promise<Item[]> {
    if (!this.db) return []
    const rows: unknown[] = await result(this.db.transaction('items').objectStore('items').index('progress').getAll('waiting'))
    return rows.map(itemFromRow)
  }

  async blob(key: string): Promise<Blob | undefined> {
    const here = this.memory.get(key)
    if (here || !this.db) return here
    return (await result(this.db.transaction('blobs').objectStore('blobs').get(key))) as Blob | undefined
  }

  /** remove deletes an item and its bytes. */
  async remove(key: string): Promise<void> {
    this.memory.delete(key)
    if (!this.db) return
    const tx = this.db.transaction(['items', 'blobs'], 'readwrite')
    tx.objectStore('items').delete(key)
    tx.objectStore('blobs').delete(key)
    await done(tx)
  }

  /** clear deletes everything except these keys, which are still to be sent. */
  async clear(keep: ReadonlySet<string>): Promise<void> {
    for (const key of [...this.memory.keys()]) if (!keep.has(key)) this.memory.delete(key)
    if (!this.db) return
    const tx = this.db.transaction(['items', 'blobs'], 'readwrite')
    for (const name of ['items', 'blobs']) {
      const store = tx.objectStore(name)
      const request = store.getAllKeys()
      request.onsuccess = () => request.result.filter((key) => !keep.has(String(key))).forEach((key) => store.delete(key))
    }
    await done(tx)
  }
}
