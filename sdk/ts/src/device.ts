import { Acks } from './acks.js'
import { Activity } from './activity.js'
import { Calls, check, until, type Waiting } from './call.js'
import { encode } from './codec.js'
import { settings, newID, type Config, type Settings } from './config.js'
import { catchUp, Connector } from './connect.js'
import { fetchFile, fetchWhole, type DownloadOptions, type Fetcher } from './download.js'
import { CallError, ClosedError, FrameError, UnsupportedError, type NoAccessError } from './errors.js'
import type { Event, EventOf, FileEvent } from './events.js'
import { MAX_AUDIO, MAX_ID, type Capabilities, type Cursor, type Deliver, type Delivered, type Error as ErrorFrame, type Hello, type Ready, type Result, type Span } from './frames.js'
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

/** Options of a message or file. */
export interface SendOptions {
  /** The message id, 1 to 128 printable characters. Sending an id that is still on its way returns the same Outgoing. */
  id?: string
  /** The id of the message that this one answers. */
  replyTo?: string
  /**
   * Adds the text to the running turn, so the agent reads it while it works. Without a running turn, or with an agent that
   * cannot (Capabilities.steer), the text waits for its own turn. The agent may answer it with a separate reply.
   */
  steer?: boolean
}

/** A delivery to another device or to `home` (doc/protocol.md §8). The id is optional. */
export type Delivery = Omit<Deliver, 't' | 'require_live'> & { requireLive?: boolean }

/** One of several agents behind a gateway, with its own settings, memory and sessions. */
export interface Profile {
  name: string
  /** The conversation uses it. */
  current: boolean
}

/** An event, and the function to call once it is handled. */
export interface Held {
  event: Event
  handled(): Promise<void>
}

/**
 * open checks the configuration, loads the store and starts to connect. It does not wait for the connection: see
 * Device.waitOnline. A device lives until Device.close.
 */
export async function open(config: Config): Promise<Device> {
  const full = settings(config)
  return new Device(full, await full.store.load())
}

/** Device is one installation and its connection. open creates it. */
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
  private pairing: boolean // use the pairing code next
  private paired = false // the pairing code was redeemed
  private cursor: Cursor // handled by the app and stored
  private storing: Promise<unknown> = Promise.resolve()
  private loop: object | undefined // the reader of the events

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
    this.indicator = new Activity(this.inbox, settings.typingTimeout, () => this.listeners.tell('activity', () => ({ type: 'activity', ...this.activity })))
    this.outbox = new Outbox(settings.store, this.inbox, this.current, settings.ackTimeout, () => this.change({ unconfirmed: this.outbox.all.size }))
    this.outbox.restore(saved.queue ?? [])
    this.acks = new Acks(() => (this.current.capabilities.resume ? this.live : undefined))
    this.receiver = new Receiver(this)
    this.connector = new Connector(settings, this)
    const around = settings.surroundings ?? surroundingsHere()
    if (around) this.unwatch = watch(this.connector, around)
    this.ended = this.connector.run().then(() => this.shut())
  }

  /** The current status. Each change also comes as an event. */
  get status(): Status {
    return { ...this.current }
  }

  /** What the typing indicator and the avatar show now. */
  get activity(): { typing: boolean; avatar: string } {
    return { typing: this.indicator.typing, avatar: this.indicator.avatar }
  }

  /** waitOnline waits until the device is online. It throws the NoAccessError or ReplacedError that ended the attempts, a ClosedError, or the signal's reason. */
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
   * reconnect connects now, while waiting and after noAccess or replaced. While online it checks whether the connection still
   * works. A browser does that automatically when the page or the network comes back; elsewhere call it when the app does.
   */
  reconnect(): void {
    this.connector.reconnect()
  }

  /** suspend closes the connection until reconnect, for an app that goes to the background. Nothing is lost. */
  suspend(): void {
    this.connector.suspend()
  }

  /**
   * close acknowledges the handled events and closes the connection. Loops end, waiting calls throw a ClosedError, and messages
   * without an ack stay in the store.
   */
  async close(): Promise<void> {
    this.connector.close()
    await this.ended
    await this.storing
  }

  /**
   * events returns the events of the device, one after the other, until the signal or close ends it. An event counts as handled when
   * the loop asks for the next one or ends. Only then the cursor moves, and the server may forget the event. A loop cannot tell an
   * exception from break: where an exception must bring the event again, use next. There is one loop at a time. A later loop
   * continues where the earlier one stopped.
   *
   * A slow loop loses nothing durable. Up to Config.queueBytes of events wait in memory; edits and states keep only the newest. Then
   * the device leaves durable events to the server, and fetches them when the loop has caught up.
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
   * next returns the next event for a program that handles it elsewhere. The program calls handled once it has handled the event;
   * without that call, next returns the same event again. It throws a ClosedError or the signal's reason.
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
   * on calls the listener for each event of a type, or of all types with `*`, and returns a function that removes it. Events go out in
   * order, one after the other, each once the listeners of the previous one have ended, including their promises. They start with the
   * first listener of `message` or `*`, so add the others before it. Listeners and a loop over events exclude each other. `status` and
   * `activity` go out at once, in any case.
   *
   * When a listener throws or rejects, a durable event is not handled. The platform reports the error, and later events go out, but the
   * device acknowledges none of them: after the next reconnect or start, that event and those after it come again. So store by id.
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
   * send queues a text for the agent. Once the promise resolves, the text is in the store, and the device sends it until the server has
   * it. Texts and voice messages stay in order. send does not wait for a connection. While the device is not approved, the server
   * answers the first message with an approval code (Status.pairing), and everything waits for the approval. It throws a FrameError for
   * a text that no server accepts, a ClosedError, or the error of the store.
   */
  async send(text: string, options: SendOptions = {}): Promise<Outgoing> {
    const id = messageID(options)
    if (!text.trim()) throw new FrameError('bad_frame', 'the message is empty: write something', id)
    checkText(text, id)
    this.offer('text messages', (c) => c.text)
    return this.outbox.add(id, { t: 'text', id, text, reply_to: options.replyTo || undefined, steer: options.steer || undefined }, 'talk')
  }

  /** sendVoice queues a voice message of at most 8 MiB (MAX_AUDIO), as send does for a text. wav of 16 kHz, mono, works best. text is optional: the speech that the app recognized itself. */
  async sendVoice(format: 'wav' | 'ogg' | 'm4a' | 'mp3' | 'webm', data: Uint8Array, text = '', options: SendOptions = {}): Promise<Outgoing> {
    const id = messageID(options)
    if (!/^(wav|ogg|m4a|mp3|webm)$/.test(format) || data.length === 0) {
      throw new FrameError('bad_frame', 'a voice message must be wav, ogg, m4a, mp3 or webm, and not empty', id)
    }
    if (data.length > MAX_AUDIO) throw new FrameError('too_big', `the voice message exceeds the limit of ${MAX_AUDIO >> 20} MiB: record several shorter ones`, id)
    checkText(text, id)
    this.offer('voice messages', (c) => c.audio)
    return this.outbox.add(id, { t: 'audio', id, format, data, text: text || undefined }, 'talk')
  }

  /**
   * sendFile queues a file for the agent. The device sends it in parts, after all messages, and again as a whole after a reconnect, with
   * the same id. Unlike a message, a file does not survive the end of the page or process: for that, use openUploads of
   * `@hermes-mobile/sdk/uploads`.
   */
  async sendFile(file: FileToSend, options: Omit<SendOptions, 'replyTo'> = {}): Promise<Outgoing> {
    const id = messageID(options)
    this.offer('files', (c) => c.media)
    checkText(file.caption ?? '', id)
    const upload = new Upload(file, id, this.current.capabilities)
    return this.outbox.add(id, upload.head, 'files', upload)
  }

  /**
   * answer answers a card with one of its options, or a clarify card with a text (then option is `other` or empty). The device stores and
   * sends it like a message. The receipt tells that the server has the answer; cardDone tells how the card ended.
   */
  async answer(card: string, option: string, text = ''): Promise<Outgoing> {
    if (!card || (!option && !text.trim())) throw new FrameError('bad_frame', 'an answer needs the id of its card, and an option or a text')
    checkText(text, card)
    const id = newID()
    return this.outbox.add(id, { t: 'prompt', id, prompt_id: card, option_id: option || undefined, text: text || undefined }, 'aside')
  }

  /** seen tells the server that the user saw everything handled so far. */
  seen(): void {
    if (this.cursor.seq > 0) this.acks.note(this.cursor.seq, true)
  }

  /** pending returns everything without a receipt, in order. After open it holds what an earlier run left in the store. */
  pending(): Outgoing[] {
    return [...this.outbox.all.values()]
  }

  /** stop interrupts the running turn. It waits for a connection, and resolves once the frame is written. */
  async stop({ signal }: Waiting = {}): Promise<void> {
    const id = newID() // the same in each attempt, so that a repeated stop does not hit the next turn
    for (;;) {
      await this.waitOnline({ signal })
      this.offer('stop', (c) => c.stop)
      if (this.calls.send(this.live, { t: 'stop', id })) return
      await until(this.listeners.changed(), signal) // the connection is gone, but the status does not tell yet
    }
  }

  /** ping measures the round trip to the server's program, in milliseconds. */
  async ping({ signal }: Waiting = {}): Promise<number> {
    await this.waitOnline({ signal })
    const began = Date.now()
    await this.calls.ask(this.live, { t: 'ping', id: newID() }, signal)
    return Date.now() - began
  }

  /**
   * call requests something of the server (doc/protocol.md §9). It waits for a connection, and never repeats a request. It throws the
   * server's CallError or FrameError, an UnsupportedError for a method that the server does not offer, a LinkLostError, or the errors of
   * waitOnline.
   */
  async call<T = unknown>(method: string, params: object = {}, { signal }: Waiting = {}): Promise<T> {
    await this.waitOnline({ signal })
    this.offer(method, (c) => c.call.includes(method))
    const { result, error } = (await this.calls.ask(this.live, { t: 'call', id: newID(), method, params }, signal)) as Result
    if (error) throw new CallError(error.code, error.message)
    return result as T
  }

  /**
   * revokeDevice revokes another device of the user that came after this one, such as one that a notice reports. That device loses its
   * connection, its token, and everything that waits for it. It throws the errors of call.
   */
  async revokeDevice(id: string, waiting: Waiting = {}): Promise<void> {
    await this.call('devices.revoke', { id }, waiting)
  }

  /** profiles returns the profiles that the conversation can use. It throws the errors of call. */
  async profiles(waiting: Waiting = {}): Promise<Profile[]> {
    return (await this.call<{ profiles: Profile[] }>('profiles.list', {}, waiting)).profiles
  }

  /** chooseProfile makes the conversation use a profile from its next turn on, for all devices that share it. It throws the errors of call. */
  async chooseProfile(name: string, waiting: Waiting = {}): Promise<void> {
    await this.call('profiles.choose', { name }, waiting)
  }

  /**
   * deliver sends a text, a file or both to another device or to `home`, and waits until the server has it. It needs a delivery token. It
   * repeats the delivery under its id across reconnects until the signal aborts, but does not store it. It throws the server's FrameError
   * or the errors of waitOnline.
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

  /** download returns the bytes of a file, from its data or its link. After a broken connection it continues at the same place. A link is valid for an hour. It throws the file's error, a DownloadError, a ClosedError or the signal's reason. */
  download(file: FileEvent, options: DownloadOptions = {}): Promise<Uint8Array> {
    return fetchWhole(this.fetcher(), file, options)
  }

  /** downloadTo downloads a file piece by piece, for files too large for memory. It returns the number of bytes. */
  downloadTo(file: FileEvent, write: (bytes: Uint8Array) => void | Promise<void>, options: DownloadOptions = {}): Promise<number> {
    return fetchFile(this.fetcher(), file, write, options)
  }

  private fetcher(): Fetcher {
    return { fetch: this.settings.fetch, base: this.settings.url, pause: (n, signal) => this.pause(this.connector.delay(n), signal) }
  }

  /** pause waits. close and the signal end it with an error. */
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

  /** offer throws for something that the agent does not support now. Before the first ready nothing is known. */
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
    if (this.loop && this.loop !== by) throw new Error('the events already have a reader: a loop over events, next, or listeners of on')
    this.loop = by
  }

  /** flow passes events to the listeners. */
  private async flow(): Promise<void> {
    while (this.listeners.flowing) {
      const q = await this.inbox.take()
      if (!q) return
      if (!this.listeners.flowing) this.inbox.settle(false)
      else {
        // An event that was not handled must not be acknowledged, and neither must later ones: an ack covers all before it.
        if (!(await this.listeners.dispatch(q.event)) && q.place) q.place.missed = true
        await this.handled(q)
      }
    }
    this.loop = undefined
  }

  /** handled removes an event, stores the cursor, and schedules the ack. */
  private async handled(q: Queued): Promise<void> {
    this.inbox.settle(true)
    const { place, seq = 0 } = q
    if (seq > 0 && place === this.place && !place.missed && (seq > this.cursor.seq || place.epoch !== this.cursor.epoch)) {
      const cursor = { epoch: place.epoch, seq }
      // Store first, then acknowledge: the server forgets what the device acknowledges.
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

  /** take handles one text message after ready. It returns an error frame without a ref. @internal */
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
      // Never claim events that are only in memory: the server would forget them.
      resume: this.cursor.epoch ? this.cursor : undefined,
    }
  }

  /** @internal */
  pairInstead(refused: NoAccessError): boolean {
    const { token, pair } = this.settings
    if (token || !pair || this.pairing || this.paired || refused.code !== 'auth_failed') return false
    return (this.pairing = true)
  }

  /** online adopts what ready says. @internal */
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

  /** resume aligns the cursor with what the server is about to send. */
  private resume(s: Span): void {
    if (!s.epoch) {
      // A server without an outbox numbers nothing, and a cursor means nothing.
      this.settle('', 0)
    } else if (s.epoch !== this.place.epoch || s.lost) {
      if (this.cursor.epoch) this.inbox.push({ event: { type: 'historyLost' } })
      const at = Math.max(s.from - 1, 0)
      this.settle(s.epoch, at)
      this.cursor = { epoch: s.epoch, seq: at }
      // From here on this device resumes: events that it does not handle must come again, even before the first ack.
      void this.keep(this.cursor)
    } else if (this.place.missed) this.settle(s.epoch, this.cursor.seq) // the missed event comes again, with those after it
  }

  private settle(epoch: string, at: number): void {
    this.place = { epoch, position: new Position(at) }
  }

  /** offline takes back everything that only a live connection has. @internal */
  offline(): void {
    this.live = undefined
    this.outbox.detach()
    this.receiver.drop()
    this.calls.drop()
    this.indicator.off()
  }

  /** shut ends the device and everybody who waits. */
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
  if (!/^[^\p{C}\p{Zl}\p{Zp}]+$/u.test(id) || [...id].length > MAX_ID) throw new FrameError('bad_frame', `a message id must be 1 to ${MAX_ID} printable characters`)
  return id
}
