import type { Event } from './events.js'
import type { Place } from './position.js'

/** An event that waits for the loop. */
export interface Queued {
  event: Event
  /** Bytes, approximately. */
  size?: number
  /** Where a durable event came from. */
  place?: Place
  /** The cursor once this event is handled; 0 for live events. */
  seq?: number
  /** A newer live event with the same key replaces this one. */
  key?: string
  /** Dropped when the inbox is full. */
  spare?: boolean
}

/** Inbox holds the events that wait for the loop. One consumer at a time calls take and settle. */
export class Inbox {
  private items: Queued[] = []
  private bytes = 0
  private taken = false // the loop has items[0]
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
   * push adds an event regardless of the limit, unless it is spare. A live event with a key replaces an earlier one that waits behind
   * the last durable event, so the loop sees the newest state, and never a state from before a durable event after it.
   */
  push(q: Queued): void {
    if (q.spare && this.full) return
    this.bytes += weight(q)
    // Events that replace one another are close together. Looking further back would cost more than an event too many.
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

  /** take waits for the next event, which stays in place until settle. It returns undefined when the signal or stop ended the wait. */
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

  /** settle completes a take: it removes a handled event, or leaves it as the next one. */
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
