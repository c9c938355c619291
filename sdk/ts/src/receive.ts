import type { Activity } from './activity.js'
import { Incoming, Reply } from './assemble.js'
import type { Calls } from './call.js'
import { decode } from './codec.js'
import type { Settings } from './config.js'
import { frameError } from './errors.js'
import { echoEvent, noticeEvent, type Event, type MessageEvent } from './events.js'
import type { Error as ErrorFrame, Media, Message, Prompt, PromptDone, Ready } from './frames.js'
import type { Inbox } from './inbox.js'
import type { Link } from './link.js'
import type { Outbox } from './outgoing.js'
import type { Place } from './position.js'
import { answersAt, type Status } from './status.js'

/** The parts of the device that the receiver uses. */
export interface Parts {
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly indicator: Activity
  readonly current: Readonly<Status>
  readonly settings: Settings
  readonly calls: Calls
  readonly place: Place
  /** Changes the status. */
  change(changes: Partial<Status>): void
}

/** Receiver turns the frames of the server into events. */
export class Receiver {
  private replies = new Map<string, Reply>()
  private files = new Map<string, Incoming>()
  private cards = new Map<string, boolean>() // id to whether the card is open

  constructor(private readonly parts: Parts) {}

  /** drop forgets unfinished messages and files, because the connection dropped. */
  drop(): void {
    this.replies.clear()
    this.files.clear()
    this.parts.place.position.cut()
  }

  /** take handles one text message after ready. It returns an error frame without a ref. */
  take(link: Link, text: string): ErrorFrame | undefined {
    const { inbox, outbox, indicator, calls } = this.parts
    let f: ReturnType<typeof decode>
    try {
      f = decode(text)
    } catch (error) {
      inbox.push({ event: { type: 'problem', error: error as Error }, spare: true })
      return undefined
    }
    switch (f.t) {
      case 'message':
        this.message(link, f)
        break
      case 'media':
        this.media(link, f)
        break
      case 'prompt':
        this.card(f)
        break
      case 'prompt_done':
        this.cardDone(link, f)
        break
      case 'echo':
        if (this.fresh(f.seq)) this.durable(link, echoEvent(f), '', f.seq, f.text.length)
        break
      case 'notice':
        if (this.fresh(f.seq)) this.durable(link, noticeEvent(f), '', f.seq, f.device.name.length)
        break
      case 'accepted':
        outbox.settle(f.id, { duplicate: f.duplicate, queued: f.queued })
        break
      case 'error':
        return this.error(f)
      case 'typing':
        indicator.set(!f.stop, indicator.avatar)
        break
      case 'avatar':
        indicator.set(indicator.typing, f.state)
        break
      case 'tool': {
        indicator.sign()
        const { t: _, ...tool } = f
        inbox.push({ event: { type: 'tool', ...tool }, key: `tool ${f.id}${f.state}`, size: f.text.length, spare: true })
        break
      }
      case 'capabilities':
        this.parts.change({ capabilities: f.capabilities, answersAt: answersAt(f.capabilities), agent: f.agent || this.parts.current.agent })
        outbox.kick()
        break
      case 'approved':
        this.parts.change({ approved: true, pairing: '' })
        outbox.again()
        break
      case 'delivered':
      case 'pong':
      case 'result':
        calls.answer(f.id, f)
        break
      case '?':
        inbox.push({ event: { type: 'unknown', frame: f.frame }, size: text.length, spare: true })
    }
    return undefined
  }

  private fresh(seq: number): boolean {
    return this.parts.place.position.fresh(seq)
  }

  /** durable queues a durable event for the loop, or leaves it to the server where the inbox is full. */
  private durable(link: Link, event: Event, key: string, seq: number, size: number): void {
    const { inbox, place } = this.parts
    link.behind ||= seq > 0 && inbox.full
    if (seq > 0 && link.behind) return // without position.done, the frame comes again
    inbox.push({ event, size, place, seq: place.position.done(key, seq) })
  }

  private message(link: Link, m: Message): void {
    const { inbox, indicator, current, place } = this.parts
    if (!this.fresh(m.seq)) return
    indicator.sign()
    const reply = this.replies.get(m.id) ?? new Reply()
    this.replies.set(m.id, reply)
    if (!reply.take(m)) {
      if (m.final) link.end() // without position.done, the whole message comes after a reconnect
      return
    }
    const text = reply.text()
    const { id, final, interrupted, source, job } = m
    const event: MessageEvent = { type: 'message', id, text, final, interrupted, replyTo: m.reply_to, source, job }
    const key = 'message ' + id
    if (final) {
      this.replies.delete(id)
      if (!current.approved && m.seq === 0) this.parts.change({ pairing: text }) // a message with a seq dates from an earlier approval
      this.durable(link, event, key, m.seq, text.length)
    } else {
      place.position.begin(key, m.seq)
      if (!link.behind) inbox.push({ event, key, size: text.length, spare: true })
    }
  }

  private media(link: Link, m: Media): void {
    if (!this.fresh(m.seq)) return
    this.parts.indicator.sign()
    let file = this.files.get(m.id)
    if (!file || m.part === 0) {
      file = new Incoming(m, this.parts.settings.maxFileBytes) // a file that starts over was cut before
      this.files.set(m.id, file)
    }
    const key = 'media ' + m.id
    if (!file.take(m)) {
      this.parts.place.position.begin(key, m.seq)
      return
    }
    this.files.delete(m.id)
    this.durable(link, file.file, key, m.seq, file.file.data?.length ?? 0)
  }

  /** After a reconnect a card comes again with its first seq, before the frames that the device missed. So its seq never moves the cursor, and its id tells whether it came before. */
  private card(p: Prompt): void {
    this.parts.indicator.sign()
    const known = this.cards.get(p.id)
    if (known === false) return // a replay of a card that ended long ago
    this.remember(p.id, true)
    const { t: _, session, seq, timeout_seconds, expires_at, ...card } = p
    const event: Event = { type: 'card', ...card, timeoutSeconds: timeout_seconds, expiresAt: expires_at, again: known === true }
    this.parts.inbox.push({ event, size: p.text.length + p.command.length })
  }

  private cardDone(link: Link, p: PromptDone): void {
    const id = p.prompt_id || p.id
    this.parts.outbox.answered(id)
    const known = this.cards.get(id)
    this.remember(id, false)
    const event: Event = { type: 'cardDone', id, optionId: p.option_id, expired: p.expired, ...(p.by && { by: p.by }) }
    if (p.seq > 0 && this.fresh(p.seq)) this.durable(link, event, '', p.seq, 0)
    else if (known !== false) this.parts.inbox.push({ event }) // the response to a late answer has no seq, or an old one
  }

  /** remember records a card. It forgets closed ones when there are too many. */
  private remember(id: string, open: boolean): void {
    if (this.cards.size > 1024) for (const [old, still] of this.cards) if (!still) this.cards.delete(old)
    this.cards.set(id, open)
  }

  private error(e: ErrorFrame): ErrorFrame | undefined {
    if (e.ref && this.parts.outbox.all.has(e.ref)) this.parts.outbox.refused(e)
    else if (!e.ref || !this.parts.calls.answer(e.ref, e)) {
      this.parts.inbox.push({ event: { type: 'problem', error: frameError(e) }, spare: true })
      return e
    }
    return undefined
  }
}

/** fillReady adds what a reference server leaves out: without approval and agent state there is nothing to wait for. */
export function fillReady(r: Ready): Ready {
  return { ...r, approved: r.approved || r.protocol === 0, agent: r.agent || 'online' }
}
