import type { Event } from './events.js'
import type { Place } from './position.js'

/** An event on its way to the loop. */
export interface Queued {
  event: Event
  /** Bytes, about. */
  size?: number
  /** Of a durable event: where it came. */
  place?: Place
  /** What the cursor is once this one is handled; 0 for live events. */
  seq?: number
  /** A newer live event of the same key replaces this one. */
  key?: string
  /** May be dropped when the inbox is full. */
  spare?: boolean
}

/** Inbox is what waits for the loop. take and settle belong to one consumer. */
export class Inbox {
  private items: Queued[] = []
  private bytes = 0
  private taken = false // items[0] is in the hands of the loop
  private stopped = false
  private wake = () => {}

  constructor(private readonly limit: number) {}

  get full(): boolean {
    return this.bytes > this.limit
  }

  get empty(): boolean {
    return this.items.length === 0
  }

  /**
   * push adds an event, whatever the limit, unless it is spare. A live event with a key takes the place of an older one that waits
   * behind the last durable one: the loop sees the newest state, and never one from before a durable event late.
   */
  push(q: Queued): void {
    if (q.spare && this.full) return
    this.bytes += weight(q)
    // The states of a moment stand close together; looking further back would cost more than one event too many.
    const first = Math.max(this.taken ? 1 : 0, this.items.length - 64)
    for (let i = this.items.length - 1; q.key && i >= first && !this.items[i]!.seq; i--) {
      if (this.items[i]!.key === q.key) {
        this.bytes -= weight(this.items[i]!)
        this.items[i] = q
        return
      }
    }
    this.items.push(q)
    this.wake()
  }

  /** take waits for the next event and leaves it in place until settle. undefined: the signal or stop ended the wait. */
  async take(signal?: AbortSignal): Promise<Queued | undefined> {
    while (!this.stopped && !signal?.aborted) {
      if (this.items.length > 0) {
        this.taken = true
        return this.items[0]
      }
      await new Promise<void>((resolve) => {
        this.wake = () => {
          signal?.removeEventListener('abort', this.wake)
          resolve()
        }
        signal?.addEventListener('abort', this.wake)
      })
    }
    return undefined
  }

  /** settle ends what take began: the event is handled and removed, or stays the next one. */
  settle(handled: boolean): void {
    if (!this.taken) return
    this.taken = false
    if (handled) this.bytes -= weight(this.items.shift()!)
  }

  stop(): void {
    this.stopped = true
    this.wake()
  }
}

function weight(q: Queued): number {
  return (q.size ?? 0) + 64
}
