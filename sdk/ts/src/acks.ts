import { encode } from './codec.js'
import type { Link } from './link.js'

/** An ack goes out after this many handled events, or this long after the first of them. */
const EVERY = 50
const AFTER = 250

/** Acks tells the server how far the app has handled events (doc/protocol.md §4): not with each event, but soon. */
export class Acks {
  private seq = 0
  private seen = false
  private count = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  /** now returns the connection to write to, where there is one that takes acks. */
  constructor(private readonly now: () => Link | undefined) {}

  /** note records that everything up to seq is stored, and with seen that the user saw it. */
  note(seq: number, seen = false): void {
    this.seq = seq
    this.seen ||= seen
    this.timer ??= setTimeout(() => this.flush(), AFTER)
    if (++this.count >= EVERY) this.flush()
  }

  flush(): void {
    if (this.count > 0) this.now()?.send(encode({ t: 'ack', seq: this.seq, ...(this.seen && { seen: true }) }))
    this.clear()
  }

  /** clear forgets the ack that is due, because the next hello replaces it. */
  clear(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.count = 0
    this.seen = false
  }
}
