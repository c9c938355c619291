import type { Entry, Saved, Store } from '@hermes-mobile/sdk'
import { keys, type Item } from '../conversation/item'
import { done, result } from './database'

type Cursor = NonNullable<Saved['cursor']>

/**
 * DeviceStore is the SDK's store. It writes an outgoing message and its item in the history in one
 * transaction, so that neither exists without the other.
 */
export class DeviceStore implements Store {
  /** The items of messages that are about to be sent, by message id. */
  private readonly items = new Map<string, Item>()

  constructor(private readonly db: IDBDatabase) {}

  /** storeWith stores an item together with the outgoing frame of this id. */
  storeWith(id: string, item: Item): void {
    this.items.set(id, item)
  }

  async load(): Promise<Saved> {
    const tx = this.db.transaction(['state', 'outgoing'])
    const [cursor, token, queue] = await Promise.all([
      result(tx.objectStore('state').get('cursor')), result(tx.objectStore('state').get('token')), result(tx.objectStore('outgoing').getAll()),
    ])
    return { cursor: cursor as Cursor | undefined, token: token as string | undefined, queue: queue as Entry[] }
  }

  /**
   * A tab that was replaced may still be writing. Within one epoch of the outbox the cursor only
   * grows.
   */
  async setCursor(cursor: Cursor): Promise<void> {
    const tx = this.db.transaction('state', 'readwrite', { durability: 'strict' })
    const store = tx.objectStore('state')
    const request = store.get('cursor')
    request.onsuccess = () => {
      const old = request.result as Cursor | undefined
      if (old?.epoch !== cursor.epoch || old.seq < cursor.seq) store.put(cursor, 'cursor')
    }
    await done(tx)
  }

  async setToken(token: string): Promise<void> {
    const tx = this.db.transaction('state', 'readwrite', { durability: 'strict' })
    tx.objectStore('state').put(token, 'token')
    await done(tx)
  }

  async add(entry: Entry): Promise<void> {
    const tx = this.db.transaction(['outgoing', 'items'], 'readwrite', { durability: 'strict' })
    tx.objectStore('outgoing').add(entry)
    const line = this.items.get(entry.id)
    if (line) tx.objectStore('items').put(line)
    await done(tx)
    this.items.delete(entry.id)
  }

  /**
   * The server accepted a message that leaves the queue. If the page lives to handle it, the ack's
   * event says more.
   */
  async remove(id: string): Promise<void> {
    const tx = this.db.transaction(['outgoing', 'items'], 'readwrite')
    const outgoing = tx.objectStore('outgoing')
    const found = outgoing.index('id').getAllKeys(id)
    found.onsuccess = () => found.result.forEach((key) => outgoing.delete(key))
    const items = tx.objectStore('items')
    const line = items.get(keys.mine(id))
    line.onsuccess = () => {
      const item = line.result as Item | undefined
      if (item?.progress === 'waiting') items.put({ ...item, progress: 'accepted' })
    }
    await done(tx)
  }
}
