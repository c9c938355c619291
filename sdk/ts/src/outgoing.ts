import { fromBase64 } from './base64.js'
import { encode } from './codec.js'
import { ClosedError, FrameError } from './errors.js'
import type { ReceiptEvent } from './events.js'
import { MAX_TEXT, type Answer, type Audio, type Error as ErrorFrame, type MediaUp, type Text } from './frames.js'
import type { Inbox } from './inbox.js'
import type { Link } from './link.js'
import type { Status } from './status.js'
import type { Entry, Store } from './store.js'
import type { Upload } from './upload.js'

/** talk: texts and voice messages, one after the other. files: one after the other, after everything else. aside: each on its own. */
type Lane = 'talk' | 'files' | 'aside'

/** The result of sending something. */
export type Receipt = Omit<ReceiptEvent, 'type'>

/** A message, a file or an answer on its way to the server. */
export class Outgoing {
  /** @internal */ sentOn: Link | undefined // the last connection that carried it, at sentAt
  /** @internal */ sentAt = 0 // or rejected
  /** @internal */ hold = 0 // the wait after that before it may be sent again
  /** @internal */ tries = 0 // rejections that a wait may cure
  private finish!: (receipt: Receipt) => void
  private readonly done: Promise<Receipt>

  /** @internal */
  constructor(
    readonly id: string,
    /** The frame, for display; for a file its first part without data. undefined for a frame of a later version. */
    readonly frame: Text | Audio | Answer | MediaUp | undefined,
    /** @internal */ readonly lane: Lane,
    /** @internal */ readonly text: string, // encoded; empty for a file
    /** @internal */ readonly upload?: Upload,
  ) {
    this.done = new Promise((resolve) => (this.finish = resolve))
  }

  /** @internal */
  end(what: Partial<Receipt>): Receipt {
    const receipt = { id: this.id, duplicate: false, queued: false, unconfirmed: false, ...what }
    this.finish(receipt)
    return receipt
  }

  /**
   * Waits for the receipt. It throws the FrameError with which the server rejected the message for good, or a ClosedError when the
   * device was closed first; the next run sends what is in the Store.
   */
  async wait(): Promise<Receipt> {
    const receipt = await this.done
    if (receipt.error) throw receipt.error
    return receipt
  }
}

/** The next part of a file goes to the socket once its backlog is this small, so that messages get in between. */
const FILL = 64 << 10
/** Sockets do not tell when they have written, so this is how often to check. */
const LOOK_AGAIN = 20

/** Outbox holds everything without an ack, and writes it to the live connection. */
export class Outbox {
  readonly all = new Map<string, Outgoing>() // in the order of add
  private link: Link | undefined
  private busy = false
  private timer: ReturnType<typeof setTimeout> | undefined
  private adding: Promise<unknown> = Promise.resolve()
  private closed = false

  constructor(
    private readonly store: Store,
    private readonly inbox: Inbox,
    private readonly status: Status,
    private readonly ackTimeout: number,
    private readonly changed: () => void,
  ) {}

  /** restore queues the frames of an earlier run. It sends a frame of a later version unchanged, on its own. */
  restore(entries: Entry[]): void {
    for (const { id, frame } of entries) {
      let parsed: { t?: unknown; data?: unknown }
      try {
        parsed = JSON.parse(frame) as Text
        if (parsed.t === 'audio') parsed.data = fromBase64(parsed.data as string)
      } catch {
        continue // no server can accept it
      }
      const talk = parsed.t === 'text' || parsed.t === 'audio'
      this.all.set(id, new Outgoing(id, talk || parsed.t === 'prompt' ? (parsed as Text) : undefined, talk ? 'talk' : 'aside', frame))
    }
    this.status.unconfirmed = this.all.size
  }

  /** add stores and queues a frame, in this order, because the queue may go out at any moment. */
  add(id: string, frame: Text | Audio | Answer | MediaUp, lane: Lane, upload?: Upload): Promise<Outgoing> {
    const added = this.adding.then(async () => {
      if (this.closed) throw new ClosedError()
      const known = this.all.get(id)
      if (known) return known
      const o = new Outgoing(id, frame, lane, upload ? '' : encode(frame), upload)
      if (!upload) await this.store.add({ id, frame: o.text })
      if (this.closed) throw new ClosedError()
      this.all.set(id, o)
      this.changed()
      this.kick()
      return o
    })
    this.adding = added.catch(() => {})
    return added
  }

  /** attach sets the live connection. Everything without an ack is due on it. */
  attach(link: Link): void {
    this.link = link
    this.kick()
  }

  detach(): void {
    this.link = undefined
    clearTimeout(this.timer)
  }

  /** again makes everything without an ack due again, after the approval. */
  again(): void {
    for (const o of this.all.values()) o.sentOn = undefined
    this.kick()
  }

  /** settle ends an outgoing frame with its receipt. One that is gone had its receipt before. */
  settle(id: string, receipt: Partial<Receipt> = {}): void {
    const o = this.all.get(id)
    if (!o) return
    this.all.delete(id)
    this.inbox.push({ event: { type: 'receipt', ...o.end(receipt) } })
    this.changed()
    this.kick()
    // If that fails, the next run sends it once more, and the server drops the duplicate.
    if (!o.upload) void attempt(this.inbox, () => this.store.remove(id))
  }

  /** answered settles every answer to a card: prompt_done acknowledges them (doc/protocol.md §7). */
  answered(card: string): void {
    for (const o of [...this.all.values()]) {
      if (o.frame?.t === 'prompt' && o.frame.prompt_id === card) this.settle(o.id)
    }
  }

  /** refused handles an error frame that names a frame of ours. Either it is final, or a wait may help. */
  refused(e: ErrorFrame): void {
    const o = this.all.get(e.ref)
    if (!o) return
    if (e.code === 'rate_limited' || e.code === 'internal') {
      const wait = Math.min(1000 * 2 ** o.tries++, 30_000)
      o.sentAt = Date.now()
      o.hold = Math.max(wait, seconds(e.retry_after))
      o.sentOn = undefined // a file starts over
      this.kick()
    } else if (e.code !== 'forbidden' || this.status.approved) {
      // Otherwise the approval is missing, and the frame goes out again after it.
      this.settle(e.ref, { error: new FrameError(e.code, e.message, e.ref, e.retry_after) })
    }
  }

  /** tooBig ends the frame for which the server closed with 1009: the largest one sent. Sending it again would end every connection. */
  tooBig(): void {
    let worst: Outgoing | undefined
    const size = (o: Outgoing) => (o.upload ? (o.upload.partSize * 4) / 3 : o.text.length)
    for (const o of this.all.values()) if (o.sentAt > 0 && (!worst || size(o) > size(worst))) worst = o
    if (worst) this.settle(worst.id, { error: new FrameError('too_big', 'the server accepts no frame of this size', worst.id) })
  }

  /** close ends everything that waits for a receipt. */
  close(): void {
    this.closed = true
    this.detach()
    for (const o of this.all.values()) o.end({ error: new ClosedError() })
  }

  /** kick starts writing what is due, unless that is under way. */
  kick(): void {
    if (!this.busy) void this.write()
  }

  private async write(): Promise<void> {
    this.busy = true
    clearTimeout(this.timer)
    for (let link = this.link; link; link = this.link) {
      const due = this.next(link)
      if (typeof due === 'number') {
        if (due < Infinity) this.timer = setTimeout(() => this.kick(), due)
        break
      }
      if (due.upload) await this.writePart(link, due, due.upload)
      else if (link.send(due.text)) this.wrote(due)
      else break // the connection is about to end
    }
    this.busy = false
  }

  /** next picks what to write: answers, messages, and a part of a file when there is nothing else. Otherwise it returns how long to wait. */
  private next(link: Link): Outgoing | number {
    const now = Date.now()
    let wait = Infinity
    const lanes = { aside: 0, talk: 0, files: 0 }
    let file: Outgoing | undefined
    let talk: Outgoing | undefined
    for (const o of this.all.values()) {
      if (o.lane !== 'aside' && lanes[o.lane]++ > 0) continue // only the first of these
      if (o.lane === 'files') {
        file = o
        continue
      }
      const due = this.due(link, o, now)
      if (due > 0) wait = Math.min(wait, due)
      else if (o.lane === 'talk') talk = o
      else return this.mark(o, link, now)
    }
    if (talk) return this.mark(talk, link, now)
    if (!file?.upload) return wait
    const u = file.upload
    const within = file.sentOn === link && u.next < u.parts // in the middle of the file
    const due = this.due(link, file, now)
    if (!within && due > 0) return Math.min(wait, due)
    if (link.buffered > FILL) return Math.min(wait, LOOK_AGAIN)
    if (!within) u.start(this.status.capabilities)
    return this.mark(file, link, now)
  }

  private mark(o: Outgoing, link: Link, now: number): Outgoing {
    o.sentOn = link
    o.sentAt = now
    o.hold = 0
    return o
  }

  /**
   * due returns the time until a frame may be sent, or sent again: at once on a new connection, later when the ack is missing. The
   * server acknowledges nothing before it approved the device, and answers its first message with an approval code. Until then
   * messages go out once per connection, and after the approval all of them go out again.
   */
  private due(link: Link, o: Outgoing, now: number): number {
    if (!this.status.approved && (o.lane !== 'talk' || o.sentOn === link)) return Infinity
    o.sentAt = Math.min(o.sentAt, now) // setting the clock back must not delay anything
    return o.sentAt + Math.max(o.hold, o.sentOn === link ? this.ackTimeout : 0) - now
  }

  private async writePart(link: Link, o: Outgoing, u: Upload): Promise<void> {
    const part = u.next++
    let frame: MediaUp
    try {
      frame = await u.read(part)
    } catch (error) {
      this.settle(o.id, { error: error as Error })
      return
    }
    // Meanwhile the connection may have changed, or the server may have rejected the file.
    if (this.link !== link || o.sentOn !== link || u.next !== part + 1 || !this.all.has(o.id) || !link.send(encode(frame))) return
    o.sentAt = Date.now()
    const done = Math.min((part + 1) * u.partSize, u.size)
    queueMicrotask(() => u.progress?.(done, u.size)) // an exception of the app must not end the writing
    if (u.next === u.parts) this.wrote(o)
  }

  /** wrote records that a whole frame is on its way. A server that sends no acks settles it with that. */
  private wrote(o: Outgoing): void {
    if (!this.status.capabilities.accepted) this.settle(o.id, { unconfirmed: true })
  }
}

/** seconds converts a retry_after to milliseconds, at most an hour. */
export function seconds(n: number): number {
  return Math.min(Math.max(n, 0), 3600) * 1000
}

/** attempt runs a call of the Store, and reports its failure to the app. */
export async function attempt(inbox: Inbox, act: () => unknown): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    inbox.push({ event: { type: 'problem', error: error as Error }, key: 'store' })
    return false
  }
}

/** checkText throws for a text that no server accepts. */
export function checkText(text: string, id: string): void {
  // A code unit has at most three bytes.
  if (text.length * 3 > MAX_TEXT && new TextEncoder().encode(text).length > MAX_TEXT) {
    throw new FrameError('too_big', `the text exceeds the limit of ${MAX_TEXT >> 20} MiB: send it as a file`, id)
  }
}
