/** Place is what came, in one life of the server's outbox. missed: an event was not handled, and the cursor must not pass it. */
export interface Place {
  epoch: string
  position: Position
  missed?: boolean
}

/**
 * Position knows which durable frames came, so that each counts once (doc/protocol.md §4). They come in the order of their
 * seq, but a long message or a file comes in pieces that share one, and another frame may come in between: then the cursor
 * may not pass the unfinished one.
 */
export class Position {
  private above = new Set<number>() // came too, but something before is unfinished
  private open = new Map<string, number>() // unfinished: its key and its seq

  /** Everything up to here came. */
  constructor(public at: number) {}

  /** Whether the frame with this seq has not come yet. Frames without seq always are fresh. */
  fresh(seq: number): boolean {
    return seq === 0 || (seq > this.at && !this.above.has(seq))
  }

  /** The pieces of something have begun to come. */
  begin(key: string, seq: number): void {
    if (seq > 0 && !this.open.has(key)) this.open.set(key, seq)
  }

  /** Something came as a whole. It returns what the cursor is once that has been handled; 0 for a frame without seq. */
  done(key: string, seq: number): number {
    this.open.delete(key)
    if (seq === 0) return 0
    this.above.add(seq)
    const limit = Math.min(Infinity, ...this.open.values())
    for (const s of this.above) if (s < limit && s > this.at) this.at = s
    for (const s of this.above) if (s <= this.at) this.above.delete(s)
    return this.at
  }

  /** Forgets what is unfinished: the link dropped, and the server sends it again from the beginning. */
  cut(): void {
    this.open.clear()
  }
}
