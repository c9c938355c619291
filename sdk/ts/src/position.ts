/** Place is the position in one epoch of the server's outbox. missed: an event was not handled, and the cursor must not pass it. */
export interface Place {
  epoch: string
  position: Position
  missed?: boolean
}

/**
 * Position records which durable frames came, so that each counts once (doc/protocol.md §4). Frames come in the order of their
 * seq. But a long message or a file comes in pieces that share one seq, and another frame can come in between: then the cursor
 * must not pass the unfinished one.
 */
export class Position {
  private above = new Set<number>() // came, too, after something unfinished
  private open = new Map<string, number>() // unfinished: key to seq

  /** Everything up to here came. */
  constructor(public at: number) {}

  /** Whether the frame with this seq is new. A frame without a seq always is. */
  fresh(seq: number): boolean {
    return seq === 0 || (seq > this.at && !this.above.has(seq))
  }

  /** Records the first piece of a message or file. */
  begin(key: string, seq: number): void {
    if (seq > 0 && !this.open.has(key)) this.open.set(key, seq)
  }

  /** Records a whole frame. It returns the cursor for after its handling, 0 for a frame without a seq. */
  done(key: string, seq: number): number {
    this.open.delete(key)
    if (seq === 0) return 0
    this.above.add(seq)
    const limit = Math.min(Infinity, ...this.open.values())
    for (const s of this.above) if (s < limit && s > this.at) this.at = s
    for (const s of this.above) if (s <= this.at) this.above.delete(s)
    return this.at
  }

  /** Forgets unfinished pieces: the connection dropped, and the server sends them from the beginning. */
  cut(): void {
    this.open.clear()
  }
}
