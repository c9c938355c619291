import { encode } from './codec.js'
import type { Link } from './link.js'

/** So many handled events, or so long after the first of them, make an ack. */
const EVERY = 50
const AFTER = 250

/** Acks tells the server how far the app got (doc/protocol.md §4): not with each event, and not late. */
export class Acks {
  private seq = 0
  private seen = false
  private count = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  /** now is the link to write to, where there is one that takes acks. */
  constructor(private readonly now: () => Link | undefined) {}

  /** Everything up to seq is stored; seen: a person was shown it. */
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

  /** clear forgets what is owed: the next hello says it. */
  clear(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.count = 0
    this.seen = false
  }
}
