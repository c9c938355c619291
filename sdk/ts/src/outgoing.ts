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

/** talk: texts and voice messages, one after the other. files: one after the other, behind all else. aside: each for itself. */
type Lane = 'talk' | 'files' | 'aside'

/** What is known when something that was sent comes to its end. */
export type Receipt = Omit<ReceiptEvent, 'type'>

/** Something on its way to the server: a message, a file, an answer. */
export class Outgoing {
  /** @internal */ sentOn: Link | undefined // written on this link, for the last time at sentAt
  /** @internal */ sentAt = 0 // or refused
  /** @internal */ hold = 0 // so long after that it may be sent again
  /** @internal */ tries = 0 // refusals that a wait may cure
  private finish!: (receipt: Receipt) => void
  private readonly done: Promise<Receipt>

  /** @internal */
  constructor(
    readonly id: string,
    /** What is sent, for display; of a file its first part, without data. undefined: a frame of a later version. */
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
   * The receipt, once the server has it. It throws the FrameError with which the server refused it for good, or a ClosedError when
   * the device was closed first; what is in the Store is sent next time.
   */
  async wait(): Promise<Receipt> {
    const receipt = await this.done
    if (receipt.error) throw receipt.error
    return receipt
  }
}

/** A file's next part is handed over once so little is left to write: a message gets in between. */
const FILL = 64 << 10
/** Sockets do not tell when they have written. */
const LOOK_AGAIN = 20

/** Outbox holds what has no receipt yet, and writes it to the live link. */
export class Outbox {
  readonly all = new Map<string, Outgoing>() // in the order they were added
  private link: Link | undefined
  private busy = false
  private timer: ReturnType<typeof setTimeout> | undefined
  private adding: Promise<unknown> = Promise.resolve()
  private closed = false

  constructor(
    private readonly store: Store,
    private readonly inbox: Inbox,
    private readonly status: Status,
    private readonly receiptTimeout: number,
    private readonly changed: () => void,
  ) {}

  /** restore queues what an earlier life left. A frame of a later version is sent as it is, each for itself. */
  restore(entries: Entry[]): void {
    for (const { id, frame } of entries) {
      let parsed: { t?: unknown; data?: unknown }
      try {
        parsed = JSON.parse(frame) as Text
        if (parsed.t === 'audio') parsed.data = fromBase64(parsed.data as string)
      } catch {
        continue // nothing a server could take
      }
      const talk = parsed.t === 'text' || parsed.t === 'audio'
      this.all.set(id, new Outgoing(id, talk || parsed.t === 'prompt' ? (parsed as Text) : undefined, talk ? 'talk' : 'aside', frame))
    }
    this.status.unconfirmed = this.all.size
  }

  /** add stores and queues; the store comes first, for what is in the queue is sent at any moment. */
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

  /** attach gives it a live link; all that has no receipt is due on it. */
  attach(link: Link): void {
    this.link = link
    this.kick()
  }

  detach(): void {
    this.link = undefined
    clearTimeout(this.timer)
  }

  /** again makes everything without receipt due on the same link: after approval. */
  again(): void {
    for (const o of this.all.values()) o.sentOn = undefined
    this.kick()
  }

  /** settle ends something with its receipt. What is not there any more had its receipt before. */
  settle(id: string, receipt: Partial<Receipt> = {}): void {
    const o = this.all.get(id)
    if (!o) return
    this.all.delete(id)
    this.inbox.push({ event: { type: 'receipt', ...o.end(receipt) } })
    this.changed()
    this.kick()
    // Where that fails it is sent once more by the next life, and the server drops it as a double.
    if (!o.upload) void attempt(this.inbox, () => this.store.remove(id))
  }

  /** answered settles what was answered to a card: prompt_done is its receipt (doc/protocol.md §7). */
  answered(card: string): void {
    for (const o of [...this.all.values()]) {
      if (o.frame?.t === 'prompt' && o.frame.prompt_id === card) this.settle(o.id)
    }
  }

  /** refused takes an error frame that names something of ours: it is final, or a wait may cure it. */
  refused(e: ErrorFrame): void {
    const o = this.all.get(e.ref)
    if (!o) return
    if (e.code === 'rate_limited' || e.code === 'internal') {
      const wait = Math.min(1000 * 2 ** o.tries++, 30_000)
      o.sentAt = Date.now()
      o.hold = Math.max(wait, seconds(e.retry_after))
      o.sentOn = undefined // a file begins anew
      this.kick()
    } else if (e.code !== 'forbidden' || this.status.approved) {
      // Else it is for want of approval, and sent again after that.
      this.settle(e.ref, { error: new FrameError(e.code, e.message, e.ref, e.retry_after) })
    }
  }

  /** tooBig ends what made the server close with 1009: the largest that was sent. Sending it again would end every connection. */
  tooBig(): void {
    let worst: Outgoing | undefined
    const size = (o: Outgoing) => (o.upload ? (o.upload.partSize * 4) / 3 : o.text.length)
    for (const o of this.all.values()) if (o.sentAt > 0 && (!worst || size(o) > size(worst))) worst = o
    if (worst) this.settle(worst.id, { error: new FrameError('too_big', 'the server takes no frame of this size', worst.id) })
  }

  /** close ends every wait for a receipt. */
  close(): void {
    this.closed = true
    this.detach()
    for (const o of this.all.values()) o.end({ error: new ClosedError() })
  }

  /** kick writes what is due, if that is not going on already. */
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
      else break // its end is on the way
    }
    this.busy = false
  }

  /** next picks what to write: answers, messages, and a part of a file when nothing else is there; or says how long to wait. */
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
    const within = file.sentOn === link && u.next < u.parts // in the middle of a series
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
   * due tells how long until a frame may be sent, again where it was: now on a new link, later where the receipt is missing. A
   * device that is not approved gets no receipts but a pairing code for its first message: there the messages are sent once a
   * link, and all again after approval.
   */
  private due(link: Link, o: Outgoing, now: number): number {
    if (!this.status.approved && (o.lane !== 'talk' || o.sentOn === link)) return Infinity
    o.sentAt = Math.min(o.sentAt, now) // a clock that was set back must hold nothing up
    return o.sentAt + Math.max(o.hold, o.sentOn === link ? this.receiptTimeout : 0) - now
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
    // Meanwhile the link may be another, or the series refused.
    if (this.link !== link || o.sentOn !== link || u.next !== part + 1 || !this.all.has(o.id) || !link.send(encode(frame))) return
    o.sentAt = Date.now()
    const done = Math.min((part + 1) * u.partSize, u.size)
    queueMicrotask(() => u.progress?.(done, u.size)) // what the app throws there does not end the writing
    if (u.next === u.parts) this.wrote(o)
  }

  /** wrote notes that the whole of it is on its way. A server without receipts leaves it at that. */
  private wrote(o: Outgoing): void {
    if (!this.status.capabilities.accepted) this.settle(o.id, { unconfirmed: true })
  }
}

/** seconds reads a retry_after; what is absurdly far away is cut to an hour. */
export function seconds(n: number): number {
  return Math.min(Math.max(n, 0), 3600) * 1000
}

/** attempt tells the app of a Store that fails, and goes on. */
export async function attempt(inbox: Inbox, act: () => unknown): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    inbox.push({ event: { type: 'problem', error: error as Error }, key: 'store' })
    return false
  }
}

/** checkText refuses a text that no server takes. */
export function checkText(text: string, id: string): void {
  // A code unit has three bytes at most.
  if (text.length * 3 > MAX_TEXT && new TextEncoder().encode(text).length > MAX_TEXT) {
    throw new FrameError('too_big', 'the text is longer than 1 MiB: send it as a file', id)
  }
}
