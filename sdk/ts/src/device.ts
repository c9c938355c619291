import { Acks } from './acks.js'
import { Activity } from './activity.js'
import { Calls, check, until, type Waiting } from './call.js'
import { encode } from './codec.js'
import { settings, newID, type Config, type Settings } from './config.js'
import { catchUp, Connector } from './connect.js'
import { fetchFile, fetchWhole, type DownloadOptions, type Fetcher } from './download.js'
import { CallError, ClosedError, FrameError, UnsupportedError, type NoAccessError } from './errors.js'
import type { Event, EventOf, FileEvent } from './events.js'
import { MAX_AUDIO, type Capabilities, type Cursor, type Deliver, type Delivered, type Error as ErrorFrame, type Hello, type Ready, type Result, type Span } from './frames.js'
import { Inbox, type Queued } from './inbox.js'
import type { Link } from './link.js'
import { Listeners } from './listen.js'
import { attempt, checkText, Outbox, seconds, type Outgoing } from './outgoing.js'
import { Position, type Place } from './position.js'
import { Receiver } from './receive.js'
import { answersAt, noStatus, type Status } from './status.js'
import type { Saved } from './store.js'
import { Upload, type FileToSend } from './upload.js'
import { surroundingsHere, watch } from './wake.js'

/** How something is sent. */
export interface SendOptions {
  /** The message id, 1 to 128 printable characters, where the app has its own. An id that is still on its way gives the same Outgoing. */
  id?: string
  /** Id of the message that this one answers. */
  replyTo?: string
  /**
   * Adds a text to the turn that runs when the server gets it: the agent reads it in the midst of its work. Where no turn runs, or the
   * agent cannot (Capabilities.steer), it waits for its own turn like any other. It may still be answered by a reply of its own.
   */
  steer?: boolean
}

/** A delivery to another device or to `home` (doc/protocol.md §8). Without id one is made. */
export type Delivery = Omit<Deliver, 't' | 'require_live'> & { requireLive?: boolean }

/** One of several agents behind one gateway, with settings, memory and sessions of its own. */
export interface Profile {
  name: string
  /** The conversation uses it. */
  current: boolean
}

/** An event, and what to call once it is handled. */
export interface Held {
  event: Event
  handled(): Promise<void>
}

/**
 * open checks the configuration, loads the store and starts to connect; it does not wait for the connection: see
 * Device.waitOnline. A device lives until Device.close.
 */
export async function open(config: Config): Promise<Device> {
  const full = settings(config)
  return new Device(full, await full.store.load())
}

/** Device is one installation and its connection. Make it with open. */
export class Device {
  /** @internal */ readonly inbox: Inbox
  /** @internal */ readonly outbox: Outbox
  /** @internal */ readonly current: Status = noStatus()
  /** @internal */ readonly indicator: Activity
  /** @internal */ readonly acks: Acks
  /** @internal */ readonly calls = new Calls()
  /** @internal */ place: Place
  private readonly receiver: Receiver
  private readonly connector: Connector
  private readonly listeners = new Listeners()
  private readonly unwatch: (() => void) | undefined
  private readonly ended: Promise<void>

  private live: Link | undefined // while online
  private token: string
  private pairing: boolean // use the pair code next
  private paired = false // the pair code was used up
  private cursor: Cursor // handled by the app and stored
  private storing: Promise<unknown> = Promise.resolve()
  private loop: object | undefined // who takes events

  /** @internal */
  constructor(
    /** @internal */ readonly settings: Settings,
    saved: Saved,
  ) {
    this.token = saved.token ?? ''
    this.pairing = !this.token
    this.cursor = saved.cursor ?? { epoch: '', seq: 0 }
    this.place = { epoch: this.cursor.epoch, position: new Position(this.cursor.seq) }
    this.inbox = new Inbox(settings.queueBytes)
    this.indicator = new Activity(this.inbox, settings.typingLease, () => this.listeners.tell('activity', () => ({ type: 'activity', ...this.activity })))
    this.outbox = new Outbox(settings.store, this.inbox, this.current, settings.receiptTimeout, () => this.change({ unconfirmed: this.outbox.all.size }))
    this.outbox.restore(saved.queue ?? [])
    this.acks = new Acks(() => (this.current.capabilities.resume ? this.live : undefined))
    this.receiver = new Receiver(this)
    this.connector = new Connector(settings, this)
    const around = settings.surroundings ?? surroundingsHere()
    if (around) this.unwatch = watch(this.connector, around)
    this.ended = this.connector.run().then(() => this.shut())
  }

  /** How things stand now. Each change also comes as an event. */
  get status(): Status {
    return { ...this.current }
  }

  /** What the indicator and the avatar show now. */
  get activity(): { typing: boolean; avatar: string } {
    return { typing: this.indicator.typing, avatar: this.indicator.avatar }
  }

  /** waitOnline returns when the device is online. It throws the NoAccessError or ReplacedError that ended the attempts, a ClosedError, or the signal's reason. */
  async waitOnline({ signal }: Waiting = {}): Promise<void> {
    for (;;) {
      check(signal)
      const { state, error } = this.current
      if (state === 'online') return
      if (state === 'closed') throw new ClosedError()
      if (state === 'noAccess' || state === 'replaced') throw error
      await until(this.listeners.changed(), signal)
    }
  }

  /**
   * reconnect tries again now: while waiting, and after noAccess and replaced. While online it checks whether the connection still
   * lives. In a browser that happens by itself when the page or the network comes back; elsewhere call it when the app does.
   */
  reconnect(): void {
    this.connector.reconnect()
  }

  /** suspend closes the connection until reconnect, for an app that goes to the background. Nothing is lost. */
  suspend(): void {
    this.connector.suspend()
  }

  /**
   * close tells the server how far the app got and closes the connection. Loops end, waiting calls throw a ClosedError, messages
   * without receipt stay in the store.
   */
  async close(): Promise<void> {
    this.connector.close()
    await this.ended
    await this.storing
  }

  /**
   * events is what happens, one event after the other, until the signal or close ends it. An event is handled when the loop asks for
   * the next one or is left: only then the cursor moves and the server may forget it. Leaving it by an exception cannot be told from
   * break; where that must bring the event again, use next. There is one loop at a time; a later one goes on where the earlier stopped.
   *
   * A slow loop loses nothing durable: up to Config.queueBytes wait in memory, of steps and states only the newest; then durable
   * events are left to the server, and fetched when the loop has caught up.
   */
  events({ signal }: Waiting = {}): AsyncIterableIterator<Event> {
    let held: Queued | undefined
    const settle = async () => {
      const q = held
      held = undefined
      if (q) await this.handled(q)
    }
    const end = async (): Promise<IteratorResult<Event>> => {
      await settle()
      if (this.loop === loop) this.loop = undefined
      return { done: true, value: undefined }
    }
    const loop: AsyncIterableIterator<Event> = {
      [Symbol.asyncIterator]: () => loop,
      next: async () => {
        await settle()
        this.claim(loop)
        held = await this.inbox.take(signal)
        return held ? { done: false, value: held.event } : end()
      },
      return: end,
    }
    return loop
  }

  /**
   * next is events for a program whose handling ends elsewhere. It waits for the next event and gives it with the function to call
   * once it is handled; without that call the next one gives the same event again. It throws a ClosedError or the signal's reason.
   */
  async next({ signal }: Waiting = {}): Promise<Held> {
    this.claim(this)
    const q = await this.inbox.take(signal)
    this.loop = undefined
    if (!q) {
      check(signal)
      throw new ClosedError()
    }
    let open = true
    return {
      event: q.event,
      handled: async () => {
        if (!open) return
        open = false
        await this.handled(q)
      },
    }
  }

  /**
   * on calls the listener for each event of a type, or of all with `*`, and returns what ends that. Events go out one after the other,
   * in order, each once its listeners have ended, promises included. They begin to flow with the first listener of `message` or `*`,
   * so add the others before it; and there is no loop over events beside them. `status` and `activity` are told at once and in any case.
   *
   * A durable event of which a listener throws or rejects is not handled. The platform reports the error, the events after it go out, and the
   * server is told of none of them: after the next reconnect, or the next start, it and what followed come again. So store by id.
   */
  on<T extends Event['type']>(type: T, listener: (event: EventOf<T>) => unknown): () => void
  on(type: '*', listener: (event: Event) => unknown): () => void
  on(type: string, listener: (event: never) => unknown): () => void {
    const off = this.listeners.add(type, listener as (event: Event) => unknown)
    if (this.loop !== this.listeners && this.listeners.flowing) {
      try {
        this.claim(this.listeners)
      } catch (error) {
        off()
        throw error
      }
      void this.flow()
    }
    return off
  }

  /**
   * send takes a message for the agent: it is in the store once the promise is kept, and is sent, again and again where needed, until the
   * server has it; messages and voice messages stay in order. It does not wait for a connection. While the device is not approved, the
   * first message makes the server give a pairing code (Status.pairing), and everything waits for the approval. It throws a FrameError
   * for what no server takes, a ClosedError, or what the store throws.
   */
  async send(text: string, options: SendOptions = {}): Promise<Outgoing> {
    const id = messageID(options)
    if (!text.trim()) throw new FrameError('bad_frame', 'the message is empty: write something', id)
    checkText(text, id)
    this.offer('text messages', (c) => c.text)
    return this.outbox.add(id, { t: 'text', id, text, reply_to: options.replyTo || undefined, steer: options.steer || undefined }, 'talk')
  }

  /** sendVoice takes a voice message of at most 8 MiB, like send. wav of 16 kHz, mono, is best understood. text: what the app recognised itself. */
  async sendVoice(format: 'wav' | 'ogg' | 'm4a' | 'mp3' | 'webm', data: Uint8Array, text = '', options: SendOptions = {}): Promise<Outgoing> {
    const id = messageID(options)
    if (!/^(wav|ogg|m4a|mp3|webm)$/.test(format) || data.length === 0) {
      throw new FrameError('bad_frame', 'a voice message is wav, ogg, m4a, mp3 or webm, and not empty', id)
    }
    if (data.length > MAX_AUDIO) throw new FrameError('too_big', 'the voice message is larger than 8 MiB: send it in several', id)
    checkText(text, id)
    this.offer('voice messages', (c) => c.audio)
    return this.outbox.add(id, { t: 'audio', id, format, data, text: text || undefined }, 'talk')
  }

  /**
   * sendFile takes a file for the agent. It is sent in parts behind all messages, and as a whole again after a drop, with the same id.
   * Unlike a message it does not survive the end of the page or process: openUploads of `@hermes-mobile/sdk/uploads` is for that.
   */
  async sendFile(file: FileToSend, options: Omit<SendOptions, 'replyTo'> = {}): Promise<Outgoing> {
    const id = messageID(options)
    this.offer('files', (c) => c.media)
    checkText(file.caption ?? '', id)
    const upload = new Upload(file, id, this.current.capabilities)
    return this.outbox.add(id, upload.head, 'files', upload)
  }

  /**
   * answer answers a card with one of its options, or a clarify card with own words (option then `other` or empty). It is kept and sent
   * like a message. The receipt says that it arrived; what was done is said by cardDone.
   */
  async answer(card: string, option: string, text = ''): Promise<Outgoing> {
    if (!card || (!option && !text.trim())) throw new FrameError('bad_frame', 'an answer names its card, and has an option or a text')
    checkText(text, card)
    const id = newID()
    return this.outbox.add(id, { t: 'prompt', id, prompt_id: card, option_id: option || undefined, text: text || undefined }, 'aside')
  }

  /** seen tells the server that a person was shown everything handled so far. */
  seen(): void {
    if (this.cursor.seq > 0) this.acks.note(this.cursor.seq, true)
  }

  /** What has no receipt yet, in the order it was added. After open it holds what an earlier life left in the store. */
  pending(): Outgoing[] {
    return [...this.outbox.all.values()]
  }

  /** stop interrupts the running turn. It waits for a connection, and returns once the frame is written. */
  async stop({ signal }: Waiting = {}): Promise<void> {
    const id = newID() // the same on each attempt: a stop must not hit the turn after
    for (;;) {
      await this.waitOnline({ signal })
      this.offer('stop', (c) => c.stop)
      if (this.calls.send(this.live, { t: 'stop', id })) return
      await until(this.listeners.changed(), signal) // the link is gone, which the status does not say yet
    }
  }

  /** ping measures the way to the server's program and back, in milliseconds. */
  async ping({ signal }: Waiting = {}): Promise<number> {
    await this.waitOnline({ signal })
    const began = Date.now()
    await this.calls.ask(this.live, { t: 'ping', id: newID() }, signal)
    return Date.now() - began
  }

  /**
   * call asks the server for something (doc/protocol.md §9). It waits for a connection, and is never repeated by itself. It throws the
   * server's CallError or FrameError, an UnsupportedError where the method is not offered, a LinkLostError, and what waitOnline throws.
   */
  async call<T = unknown>(method: string, params: object = {}, { signal }: Waiting = {}): Promise<T> {
    await this.waitOnline({ signal })
    this.offer(method, (c) => c.call.includes(method))
    const { result, error } = (await this.calls.ask(this.live, { t: 'call', id: newID(), method, params }, signal)) as Result
    if (error) throw new CallError(error.code, error.message)
    return result as T
  }

  /**
   * revokeDevice shuts out another device of the user that came after this one, such as one that a notice tells of. It loses its
   * connection, its token, and what waits for it. It throws what call throws.
   */
  async revokeDevice(id: string, waiting: Waiting = {}): Promise<void> {
    await this.call('devices.revoke', { id }, waiting)
  }

  /** profiles lists the profiles of the agent that the conversation can choose from. It throws what call throws. */
  async profiles(waiting: Waiting = {}): Promise<Profile[]> {
    return (await this.call<{ profiles: Profile[] }>('profiles.list', {}, waiting)).profiles
  }

  /** chooseProfile has the conversation use a profile from its next turn on, on all devices that share it. It throws what call throws. */
  async chooseProfile(name: string, waiting: Waiting = {}): Promise<void> {
    await this.call('profiles.choose', { name }, waiting)
  }

  /**
   * deliver sends a text, a file or both to another device or to `home`, and waits until the server has it; it needs a delivery token.
   * It is repeated under its id across reconnects until the signal ends it; it is not kept in the store. It throws the server's FrameError
   * and what waitOnline throws.
   */
  async deliver({ requireLive, id = newID(), ...delivery }: Delivery, { signal }: Waiting = {}): Promise<{ queued: boolean }> {
    for (;;) {
      await this.waitOnline({ signal })
      this.offer('deliveries', (c) => c.deliver)
      try {
        const answer = await this.calls.ask(this.live, { t: 'deliver', id, ...delivery, ...(requireLive && { require_live: true }) }, signal)
        return { queued: (answer as Delivered).queued }
      } catch (error) {
        const later = error instanceof FrameError && (error.code === 'rate_limited' || error.code === 'internal')
        if ((error instanceof FrameError && !later) || error instanceof ClosedError || signal?.aborted) throw error
        await this.pause(later ? Math.max(1000, seconds(error.retryAfter)) : 100, signal)
      }
    }
  }

  /** download gives a file's bytes: from its data, or from its link, going on where that broke. A link lives an hour. It throws the file's error, a DownloadError, a ClosedError or the signal's reason. */
  download(file: FileEvent, options: DownloadOptions = {}): Promise<Uint8Array> {
    return fetchWhole(this.fetcher(), file, options)
  }

  /** downloadTo is download piece by piece, for what is too large for memory. It gives the number of bytes. */
  downloadTo(file: FileEvent, write: (bytes: Uint8Array) => void | Promise<void>, options: DownloadOptions = {}): Promise<number> {
    return fetchFile(this.fetcher(), file, write, options)
  }

  private fetcher(): Fetcher {
    return { fetch: this.settings.fetch, base: this.settings.url, pause: (n, signal) => this.pause(this.connector.delay(n), signal) }
  }

  /** pause waits; close and the signal end it with an error. */
  private async pause(ms: number, signal?: AbortSignal): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
    try {
      await until(Promise.race([over, this.ended]), signal)
    } finally {
      clearTimeout(timer)
    }
    if (this.current.state === 'closed') throw new ClosedError()
  }

  /** offer refuses what the agent cannot do now; before the first ready nothing is known. */
  private offer(what: string, can: (c: Capabilities) => boolean): void {
    if (this.current.agent !== '' && !can(this.current.capabilities)) throw new UnsupportedError(what)
  }

  /** @internal */
  change(changes: Partial<Status>): void {
    if (changes.state && changes.state !== this.current.state) this.current.since = Date.now()
    Object.assign(this.current, changes)
    this.inbox.push({ event: { type: 'status', status: this.status }, key: 'status' })
    this.listeners.tell('status', () => ({ type: 'status', status: this.status }))
  }

  private claim(by: object): void {
    if (this.loop && this.loop !== by) throw new Error('somebody takes the events already: a loop over events, next, or listeners of on')
    this.loop = by
  }

  /** flow hands events to the listeners. */
  private async flow(): Promise<void> {
    while (this.listeners.flowing) {
      const q = await this.inbox.take()
      if (!q) return
      if (!this.listeners.flowing) this.inbox.settle(false)
      else {
        // What was not handled is left out of the acks, and so is all that follows: an ack names the last of all.
        if (!(await this.listeners.dispatch(q.event)) && q.place) q.place.missed = true
        await this.handled(q)
      }
    }
    this.loop = undefined
  }

  /** handled removes an event, stores the cursor and lets the server know in time. */
  private async handled(q: Queued): Promise<void> {
    this.inbox.settle(true)
    const { place, seq = 0 } = q
    if (seq > 0 && place === this.place && !place.missed && (seq > this.cursor.seq || place.epoch !== this.cursor.epoch)) {
      const cursor = { epoch: place.epoch, seq }
      // Stored first, then told: the server forgets what it is told.
      if ((await this.keep(cursor)) && place === this.place) {
        this.cursor = cursor
        this.acks.note(seq)
      }
    }
    if (this.inbox.empty && this.live?.behind) this.live.end(catchUp)
  }

  private keep(cursor: Cursor): Promise<boolean> {
    const kept = this.storing.then(() => attempt(this.inbox, () => this.settings.store.setCursor(cursor)))
    this.storing = kept
    return kept
  }

  /** take takes one text message after ready; it returns an error frame that belongs to nothing. @internal */
  take(link: Link, text: string): ErrorFrame | undefined {
    return this.receiver.take(link, text)
  }

  /** @internal */
  hello(): Hello {
    const { device, user, token, pair, delta, tools, notices } = this.settings
    const usePair = !token && this.pairing && pair && !this.paired
    return {
      t: 'hello', ...(usePair ? { pair } : { token: token || this.token }), device, user,
      accept: [...(delta ? ['delta', 'tail'] : []), ...(tools ? ['tool'] : []), ...(notices ? ['notice'] : [])],
      // What is only in memory is not claimed: the server would forget it.
      resume: this.cursor.epoch ? this.cursor : undefined,
    }
  }

  /** @internal */
  pairInstead(refused: NoAccessError): boolean {
    const { token, pair } = this.settings
    if (token || !pair || this.pairing || this.paired || refused.code !== 'auth_failed') return false
    return (this.pairing = true)
  }

  /** online takes over what ready says. @internal */
  online(link: Link, r: Ready): void {
    if (r.token) {
      this.token = r.token
      this.pairing = false
      this.paired = true
      void attempt(this.inbox, () => this.settings.store.setToken(r.token)).then((kept) => kept && link.send(encode({ t: 'ack', seq: 0, token: true })))
    }
    this.live = link
    this.resume(r.resume)
    this.acks.clear()
    this.change({
      state: 'online', error: undefined, until: 0, session: r.session, server: r.server, avatarUrl: r.avatar_url, capabilities: r.capabilities,
      answersAt: answersAt(r.capabilities), agent: r.agent, approved: r.approved, ...(r.approved && { pairing: '' }),
    })
    this.outbox.attach(link)
  }

  /** resume lines the cursor up with what the server is about to send. */
  private resume(s: Span): void {
    if (!s.epoch) {
      // No outbox there: nothing is numbered, and a cursor means nothing.
      this.settle('', 0)
    } else if (s.epoch !== this.place.epoch || s.lost) {
      if (this.cursor.epoch) this.inbox.push({ event: { type: 'historyLost' } })
      const at = Math.max(s.from - 1, 0)
      this.settle(s.epoch, at)
      this.cursor = { epoch: s.epoch, seq: at }
      // From here on this device resumes: what it was sent and did not handle must come again, even before the first ack.
      void this.keep(this.cursor)
    } else if (this.place.missed) this.settle(s.epoch, this.cursor.seq) // it comes again, and what followed it
  }

  private settle(epoch: string, at: number): void {
    this.place = { epoch, position: new Position(at) }
  }

  /** offline takes back what only a live connection has. @internal */
  offline(): void {
    this.live = undefined
    this.outbox.detach()
    this.receiver.drop()
    this.calls.drop()
    this.indicator.off()
  }

  /** shut is the end: nobody may wait any longer. */
  private shut(): void {
    this.unwatch?.()
    this.change({ state: 'closed', until: 0 })
    this.indicator.stop()
    this.acks.clear()
    this.outbox.close()
    this.calls.drop(new ClosedError())
    this.inbox.stop()
  }
}

function messageID({ id = newID() }: SendOptions): string {
  if (!/^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u.test(id)) throw new FrameError('bad_frame', 'a message id must be 1 to 128 printable characters')
  return id
}
