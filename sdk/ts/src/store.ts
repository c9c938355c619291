import type { Cursor } from './frames.js'

/**
 * Store keeps what must outlive a connection and, when it is durable, the page or process. Each method may return at once
 * or give a promise, so localStorage, IndexedDB, AsyncStorage and a file are all the same here. One Device uses a Store at
 * a time.
 */
export interface Store {
  /** Everything kept. It is called once, by open. */
  load(): Saved | Promise<Saved>
  /** How far the app has handled events. Losing the newest one only means seeing some events again. */
  setCursor(cursor: Cursor): void | Promise<void>
  /** The device's own token, a secret. */
  setToken(token: string): void | Promise<void>
  /** Adds an outgoing frame behind those there are. Once it is done the frame must survive what the Store promises. */
  add(entry: Entry): void | Promise<void>
  /** Forgets an outgoing frame; one that is not there is no error. */
  remove(id: string): void | Promise<void>
}

/** What a Store holds; nothing of it where it is new. */
export interface Saved {
  cursor?: Cursor
  token?: string
  /** In the order they were added. */
  queue?: Entry[]
}

/** An outgoing frame without receipt, as it goes on the wire. */
export interface Entry {
  id: string
  frame: string
}

/** A Store that forgets everything with the page or process, unless a class that extends it keeps what load gives whenever changed is called. */
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

  /** Does nothing here. */
  protected changed(): void | Promise<void> {}
}
