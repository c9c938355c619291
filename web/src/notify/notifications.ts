import type { Device } from '@hermes-mobile/sdk'
import { batch, computed, effect, signal } from '@preact/signals'
import { folder } from '../talk/entrance'
import { explain } from '../view/explain'
import { language, t } from '../words/words'
import { unable, type Unable } from './able'
import { forget, remember } from './memory'
import type { Notice } from './notice'
import { alone } from './shown'
import { registered, subscribed, unsubscribe, within } from './subscription'
import { isQuiet, loadWish, saveWish, timeZone, wishName, type Wish } from './wish'

/** How it stands with notifications on this device. `pending`: wanted, and the server will be told when it is connected. */
export type State = Exclude<Unable, ''> | 'unknown' | 'serverOff' | 'denied' | 'off' | 'pending' | 'on' | 'failed'

/** What became of a test. `sent`: the push service took it. */
export type Tested = { state: 'none' | 'running' | 'sent' | 'arrived' | 'missing' } | { state: 'failed'; reason: string }

/** So long a test notification may take to arrive before that is told. */
const ARRIVING = 20_000

/** Said by the service worker. */
interface Said {
  show?: string
  fetch?: true
  renew?: true
  arrived?: true
}

/** Notifying is the notifications of one device: what the person wants of them, and what server and browser make of it. */
export class Notifying {
  readonly wish
  readonly tested = signal<Tested>({ state: 'none' })
  /** Something is being changed at browser and server. */
  readonly busy = signal(false)
  /** The person is asked for the permission, or was a moment ago. */
  readonly asking = signal(false)
  readonly problem = signal('')
  readonly state = computed(() => this.stand())
  private readonly permission = signal(unable() ? 'default' : Notification.permission)
  /** undefined: the server has not said yet. */
  private readonly offered = signal<boolean | undefined>(undefined)
  private connected = false
  private line: Promise<unknown> = Promise.resolve()
  private readonly ends: (() => void)[] = []

  constructor(
    private readonly device: Device,
    private readonly id: string,
  ) {
    this.wish = signal(loadWish(id))
    this.ends.push(device.on('status', () => this.look()))
    const listen = (target: EventTarget | undefined, type: string, listener: (event: never) => void) => {
      target?.addEventListener(type, listener as EventListener)
      this.ends.push(() => target?.removeEventListener(type, listener as EventListener))
    }
    listen(window, 'storage', ({ key }: StorageEvent) => key === wishName(id) && this.reload()) // another tab chose
    listen(document, 'visibilitychange', () => this.permit())
    if (unable()) return
    listen(navigator.serviceWorker, 'message', (event: MessageEvent<Said>) => this.hear(event))
    navigator.permissions?.query({ name: 'notifications' }).then((status) => listen(status, 'change', () => this.permit()), () => {})
    this.ends.push(effect(() => {
      const lang = language.value
      if (this.wish.peek().on) void remember(folder(), { language: lang }).catch(() => {})
    }))
    this.look()
  }

  private stand(): State {
    const { on, endpoint } = this.wish.value
    const cannot = unable()
    if (cannot) return cannot
    if (this.offered.value === false) return 'serverOff'
    if (this.permission.value === 'denied') return 'denied'
    if (this.problem.value) return 'failed'
    if (on && this.permission.value === 'granted') return endpoint ? 'on' : 'pending'
    return this.offered.value === undefined ? 'unknown' : 'off'
  }

  /** look sees what the connection allows now. */
  private look(): void {
    const { state, agent, approved, capabilities } = this.device.status
    if (agent !== '' && approved) this.offered.value = capabilities.call.includes('push.register')
    const connected = state === 'online' && approved && this.offered.peek() === true
    const came = connected && !this.connected
    this.connected = connected
    if (came) void this.renew()
    // Who is shut out is told nothing more; who is let in again subscribes anew.
    if (state === 'noAccess' && this.wish.peek().endpoint) void this.queue(() => this.drop())
  }

  private reload(): void {
    this.wish.value = loadWish(this.id)
    void this.renew()
  }

  private permit(): void {
    if (unable()) return
    const before = this.permission.peek()
    this.permission.value = Notification.permission
    if (before !== this.permission.peek()) void this.renew()
  }

  /** switchOn asks for the permission; call it on a click. */
  async switchOn(): Promise<void> {
    if (this.busy.peek()) return
    this.busy.value = this.asking.value = true
    try {
      this.permission.value = await Notification.requestPermission()
      if (this.permission.peek() !== 'granted') {
        this.problem.value = this.permission.peek() === 'denied' ? '' : t('notifyDismissed')
        return
      }
      this.change({ on: true })
    } finally {
      this.busy.value = this.asking.value = false
    }
    await this.renew()
  }

  async switchOff(): Promise<void> {
    this.change({ on: false })
    this.problem.value = ''
    this.tested.value = { state: 'none' }
    await this.renew()
  }

  /** choose changes what notifications hold and when they come. */
  async choose(changes: Pick<Partial<Wish>, 'content' | 'quiet'>): Promise<void> {
    this.change(changes)
    await this.renew()
  }

  /** resume wants what an earlier device of this browser wanted, which had the permission. */
  async resume({ content, quiet }: Wish): Promise<void> {
    this.change({ on: true, content, quiet })
    await this.renew()
  }

  private change(changes: Partial<Wish>): void {
    this.wish.value = { ...this.wish.peek(), ...changes }
    saveWish(this.id, this.wish.peek())
  }

  /** queue has one change after the other made. */
  private queue(change: () => Promise<unknown>): Promise<void> {
    const run = this.line.then(async () => {
      this.busy.value = true
      try {
        await change()
        this.problem.value = ''
      } catch (error) {
        // What the end of the connection broke off is made good with the next one.
        if (this.device.status.state === 'online') this.problem.value = explain(error)
      } finally {
        this.busy.value = false
      }
    })
    this.line = run
    return run
  }

  /** renew brings browser and server to what the person wants, as far as there is a connection. */
  private renew(): Promise<void> {
    return this.queue(async () => {
      const { on, endpoint } = this.wish.peek()
      if (on && this.permission.peek() === 'granted') {
        if (this.connected) await this.register()
      } else if (endpoint) await this.stop()
    })
  }

  private async register(): Promise<void> {
    const { key } = await this.device.call<{ key: string }>('push.key')
    const subscription = await subscribed(key)
    const { content, quiet, endpoint: before } = this.wish.peek()
    const { endpoint, keys } = subscription.toJSON()
    await remember(folder(), { language: language.peek(), key })
    if (before && before !== endpoint) await this.device.call('push.unregister', { endpoint: before })
    await this.device.call('push.register', { kind: 'webpush', endpoint, keys, content, ...(isQuiet(quiet) && { quiet: { ...quiet, tz: timeZone() } }) })
    this.change({ endpoint: endpoint! })
  }

  /** stop has the server and the browser forget the subscription. Without a connection the server learns it from the push service. */
  private async stop(): Promise<void> {
    const { endpoint } = this.wish.peek()
    if (this.connected && endpoint) await this.device.call('push.unregister', { endpoint }, { signal: AbortSignal.timeout(5000) })
    await this.drop()
  }

  /** drop ends the subscription in the browser, with what is shown and remembered. */
  private async drop(): Promise<void> {
    await unsubscribe()
    await forget(folder())
    const registration = await registered()
    await alone(async () => (await registration.getNotifications()).forEach((shown) => shown.close()))
    this.change({ endpoint: '' })
  }

  /** test has the server send one notification now. */
  async test(): Promise<void> {
    this.tested.value = { state: 'running' }
    try {
      const { endpoint } = this.wish.peek()
      const { ok, status = 0, reason = '' } = await this.device.call<{ ok: boolean; status?: number; reason?: string }>('push.test', { endpoint }, { signal: AbortSignal.timeout(30_000) })
      if (!ok) {
        this.tested.value = { state: 'failed', reason: status ? `${reason} (HTTP ${status})` : reason }
        if (status === 404 || status === 410) await this.anew()
        return
      }
    } catch (error) {
      this.tested.value = { state: 'failed', reason: (error as Error).name === 'TimeoutError' ? t('unreachable') : explain(error) }
      return
    }
    if (this.tested.peek().state !== 'running') return // it was here before the server's word of it
    this.tested.value = { state: 'sent' }
    setTimeout(() => this.tested.peek().state === 'sent' && (this.tested.value = { state: 'missing' }), ARRIVING)
  }

  /** anew replaces a subscription that the push service does not know any more. */
  private async anew(): Promise<void> {
    await this.queue(async () => {
      await unsubscribe()
      await this.register()
    })
  }

  private hear({ data, ports }: MessageEvent<Said>): void {
    if (data.renew) void this.renew()
    if (data.arrived && this.tested.peek().state !== 'none') this.tested.value = { state: 'arrived' }
    if (data.fetch) {
      // Where another tab has the connection, or nobody may have it, this page brings nothing.
      const ends = ['replaced', 'noAccess'].includes(this.device.status.state)
      if (!ends) this.device.reconnect()
      const reached = ends ? Promise.reject() : this.device.ping({ signal: AbortSignal.timeout(5000) })
      reached.then(() => ports[0]?.postMessage(true), () => ports[0]?.postMessage(false))
    }
  }

  /** tidy closes the notifications of what a person has before them now. */
  async tidy(has: (id: string) => Promise<boolean>): Promise<void> {
    if (unable() || !this.wish.peek().on) return
    const registration = await registered()
    await alone(async () => {
      for (const shown of await registration.getNotifications()) {
        const { type, id, ids } = Object((shown.data as { notice?: Notice } | null)?.notice) as Partial<Notice>
        if (type === 'test') continue
        const read = type === 'card' || type === 'notice' || type === 'outcome' ? [id!] : (ids ?? [])
        if (read.length === 0 && this.device.status.state !== 'online') continue
        if ((await Promise.all(read.map(has))).every(Boolean)) shown.close() // it closes what has its tag by then
      }
    })
  }

  /** signOut forgets all of it, here and, where there is a connection, at the server. */
  async signOut(): Promise<void> {
    const { on, endpoint } = this.wish.peek()
    if (on || endpoint) {
      this.change({ on: false })
      const stopped = this.queue(() => this.stop().catch(() => this.drop()))
      await within(stopped, 10_000, '').catch(() => {}) // a browser that hangs keeps nobody here
    }
    saveWish(this.id, undefined)
  }

  close(): void {
    batch(() => this.ends.forEach((end) => end()))
  }
}
