import type { Cursor } from './frames.js'

/**
 * Store holds the state that must outlive a connection and, when it is durable, the page or process. Each method may return
 * at once or return a promise, so localStorage, IndexedDB, AsyncStorage and files all work. One Device uses a Store at a time.
 */
export interface Store {
  /** Returns the whole state. open calls it once. */
  load(): Saved | Promise<Saved>
  /** Stores how far the app has handled events. If the newest cursor gets lost, some events come again. */
  setCursor(cursor: Cursor): void | Promise<void>
  /** Stores the device's own token, a secret. */
  setToken(token: string): void | Promise<void>
  /** Appends an outgoing frame. Once it is done, the frame must be as durable as the Store promises. */
  add(entry: Entry): void | Promise<void>
  /** Removes an outgoing frame. An unknown id is not an error. */
  remove(id: string): void | Promise<void>
}

/** The content of a Store; empty for a new one. */
export interface Saved {
  cursor?: Cursor
  token?: string
  /** In the order of add. */
  queue?: Entry[]
}

/** An outgoing frame without an ack, as it goes on the wire. */
export interface Entry {
  id: string
  frame: string
}

/** A Store that forgets everything at the end of the page or process. A class that extends it can save the result of load whenever changed is called. */
export class MemoryStore implements Store {
  private saved: Saved & { queue: Entry[] }

  constructor(saved: Saved = {}) {
    this.saved = { queue: [], ...saved }
  }

  load(): Saved {
    return { ...this.saved }
  }

  setCursor(cursor: Cursor): void | Promise<void> {
    this.saved.cursor = cursor
    return this.changed()
  }

  setToken(token: string): void | Promise<void> {
    this.saved.token = token
    return this.changed()
  }

  add(entry: Entry): void | Promise<void> {
    this.saved.queue = [...this.saved.queue, entry]
    return this.changed()
  }

  remove(id: string): void | Promise<void> {
    this.saved.queue = this.saved.queue.filter((entry) => entry.id !== id)
    return this.changed()
  }

  /** Called after each change. Does nothing here. */
  protected changed(): void | Promise<void> {}
}
