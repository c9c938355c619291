import type { Device } from '@hermes-mobile/sdk'
import { batch, computed, effect, signal } from '@preact/signals'
import { pageBase } from '../conversation/address'
import { errorText } from '../view/errorText'
import { language, t } from '../i18n/i18n'
import { unsupportedReason, type Unsupported } from './support'
import { clearWorkerState, saveWorkerState } from './workerState'
import type { PushNotice } from './notification'
import { exclusively } from './display'
import { readyWorker, ensureSubscription, unsubscribe, withTimeout } from './subscription'
import { isQuietHours, loadPreferences, savePreferences, timeZone, preferencesKey, type NotificationPreferences } from './preferences'

/** How it stands with notifications on this device. `pending`: wanted, and the server will be told when it is connected. */
export type NotificationState = Exclude<Unsupported, ''> | 'unknown' | 'serverOff' | 'denied' | 'off' | 'pending' | 'on' | 'failed'

/** What became of a test. `sent`: the push service took it. */
export type TestState = { state: 'none' | 'running' | 'sent' | 'arrived' | 'missing' } | { state: 'failed'; reason: string }

/** So long a test notification may take to arrive before that is told. */
const ARRIVAL_TIMEOUT = 20_000

/** Said by the service worker. */
interface WorkerMessage {
  show?: string
  fetch?: true
  renew?: true
  arrived?: true
}

/** Notifying is the notifications of one device: what the person wants of them, and what server and browser make of it. */
export class Notifications {
  readonly preferences
  readonly testState = signal<TestState>({ state: 'none' })
  /** Something is being changed at browser and server. */
  readonly busy = signal(false)
  /** The person is asked for the permission, or was a moment ago. */
  readonly asking = signal(false)
  readonly problem = signal('')
  readonly state = computed(() => this.computeState())
  private readonly permission = signal(unsupportedReason() ? 'default' : Notification.permission)
  /** undefined: the server has not said yet. */
  private readonly serverOffers = signal<boolean | undefined>(undefined)
  private connected = false
  private queueTail: Promise<unknown> = Promise.resolve()
  private readonly cleanups: (() => void)[] = []

  constructor(
    private readonly device: Device,
    private readonly id: string,
  ) {
    this.preferences = signal(loadPreferences(id))
    this.cleanups.push(device.on('status', () => this.onStatus()))
    const listen = (target: EventTarget | undefined, type: string, listener: (event: never) => void) => {
      target?.addEventListener(type, listener as EventListener)
      this.cleanups.push(() => target?.removeEventListener(type, listener as EventListener))
    }
    listen(window, 'storage', ({ key }: StorageEvent) => key === preferencesKey(id) && this.reload()) // another tab chose
    listen(document, 'visibilitychange', () => this.onPermissionChange())
    if (unsupportedReason()) return
    listen(navigator.serviceWorker, 'message', (event: MessageEvent<WorkerMessage>) => this.onWorkerMessage(event))
    navigator.permissions?.query({ name: 'notifications' }).then((status) => listen(status, 'change', () => this.onPermissionChange()), () => {})
    this.cleanups.push(effect(() => {
      const lang = language.value
      if (this.preferences.peek().on) void saveWorkerState(pageBase(), { language: lang }).catch(() => {})
    }))
    this.onStatus()
  }

  private computeState(): NotificationState {
    const { on, endpoint } = this.preferences.value
    const cannot = unsupportedReason()
    if (cannot) return cannot
    if (this.serverOffers.value === false) return 'serverOff'
    if (this.permission.value === 'denied') return 'denied'
    if (this.problem.value) return 'failed'
    if (on && this.permission.value === 'granted') return endpoint ? 'on' : 'pending'
    return this.serverOffers.value === undefined ? 'unknown' : 'off'
  }

  /** look sees what the connection allows now. */
  private onStatus(): void {
    const { state, agent, approved, capabilities } = this.device.status
    if (agent !== '' && approved) this.serverOffers.value = capabilities.call.includes('push.register')
    const connected = state === 'online' && approved && this.serverOffers.peek() === true
    const came = connected && !this.connected
    this.connected = connected
    if (came) void this.sync()
    // Who is shut out is told nothing more; who is let in again subscribes anew.
    if (state === 'noAccess' && this.preferences.peek().endpoint) void this.enqueue(() => this.drop())
  }

  private reload(): void {
    this.preferences.value = loadPreferences(this.id)
    void this.sync()
  }

  private onPermissionChange(): void {
    if (unsupportedReason()) return
    const before = this.permission.peek()
    this.permission.value = Notification.permission
    if (before !== this.permission.peek()) void this.sync()
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
    await this.sync()
  }

  async switchOff(): Promise<void> {
    this.change({ on: false })
    this.problem.value = ''
    this.testState.value = { state: 'none' }
    await this.sync()
  }

  /** choose changes what notifications hold and when they come. */
  async update(changes: Pick<Partial<NotificationPreferences>, 'content' | 'quiet'>): Promise<void> {
    this.change(changes)
    await this.sync()
  }

  /** resume wants what an earlier device of this browser wanted, which had the permission. */
  async adopt({ content, quiet }: NotificationPreferences): Promise<void> {
    this.change({ on: true, content, quiet })
    await this.sync()
  }

  private change(changes: Partial<NotificationPreferences>): void {
    this.preferences.value = { ...this.preferences.peek(), ...changes }
    savePreferences(this.id, this.preferences.peek())
  }

  /** queue has one change after the other made. */
  private enqueue(change: () => Promise<unknown>): Promise<void> {
    const run = this.queueTail.then(async () => {
      this.busy.value = true
      try {
        await change()
        this.problem.value = ''
      } catch (error) {
        // What the end of the connection broke off is made good with the next one.
        if (this.device.status.state === 'online') this.problem.value = errorText(error)
      } finally {
        this.busy.value = false
      }
    })
    this.queueTail = run
    return run
  }

  /** renew brings browser and server to what the person wants, as far as there is a connection. */
  private sync(): Promise<void> {
    return this.enqueue(async () => {
      const { on, endpoint } = this.preferences.peek()
      if (on && this.permission.peek() === 'granted') {
        if (this.connected) await this.register()
      } else if (endpoint) await this.stop()
    })
  }

  private async register(): Promise<void> {
    const { key } = await this.device.call<{ key: string }>('push.key')
    const subscription = await ensureSubscription(key)
    const { content, quiet, endpoint: before } = this.preferences.peek()
    const { endpoint, keys } = subscription.toJSON()
    await saveWorkerState(pageBase(), { language: language.peek(), key })
    if (before && before !== endpoint) await this.device.call('push.unregister', { endpoint: before })
    await this.device.call('push.register', { kind: 'webpush', endpoint, keys, content, ...(isQuietHours(quiet) && { quiet: { ...quiet, tz: timeZone() } }) })
    this.change({ endpoint: endpoint! })
  }

  /** stop has the server and the browser forget the subscription. Without a connection the server learns it from the push service. */
  private async stop(): Promise<void> {
    const { endpoint } = this.preferences.peek()
    if (this.connected && endpoint) await this.device.call('push.unregister', { endpoint }, { signal: AbortSignal.timeout(5000) })
    await this.drop()
  }

  /** drop ends the subscription in the browser, with what is shown and remembered. */
  private async drop(): Promise<void> {
    await unsubscribe()
    await clearWorkerState(pageBase())
    const registration = await readyWorker()
    await exclusively(async () => (await registration.getNotifications()).forEach((shown) => shown.close()))
    this.change({ endpoint: '' })
  }

  /** test has the server send one notification now. */
  async test(): Promise<void> {
    this.testState.value = { state: 'running' }
    try {
      const { endpoint } = this.preferences.peek()
      const { ok, status = 0, reason = '' } = await this.device.call<{ ok: boolean; status?: number; reason?: string }>('push.test', { endpoint }, { signal: AbortSignal.timeout(30_000) })
      if (!ok) {
        this.testState.value = { state: 'failed', reason: status ? `${reason} (HTTP ${status})` : reason }
        if (status === 404 || status === 410) await this.resubscribe()
        return
      }
    } catch (error) {
      this.testState.value = { state: 'failed', reason: (error as Error).name === 'TimeoutError' ? t('unreachable') : errorText(error) }
      return
    }
    if (this.testState.peek().state !== 'running') return // it was here before the server's word of it
    this.testState.value = { state: 'sent' }
    setTimeout(() => this.testState.peek().state === 'sent' && (this.testState.value = { state: 'missing' }), ARRIVAL_TIMEOUT)
  }

  /** anew replaces a subscription that the push service does not know any more. */
  private async resubscribe(): Promise<void> {
    await this.enqueue(async () => {
      await unsubscribe()
      await this.register()
    })
  }

  private onWorkerMessage({ data, ports }: MessageEvent<WorkerMessage>): void {
    if (data.renew) void this.sync()
    if (data.arrived && this.testState.peek().state !== 'none') this.testState.value = { state: 'arrived' }
    if (data.fetch) {
      // Where another tab has the connection, or nobody may have it, this page brings nothing.
      const ends = ['replaced', 'noAccess'].includes(this.device.status.state)
      if (!ends) this.device.reconnect()
      const reached = ends ? Promise.reject() : this.device.ping({ signal: AbortSignal.timeout(5000) })
      reached.then(() => ports[0]?.postMessage(true), () => ports[0]?.postMessage(false))
    }
  }

  /** tidy closes the notifications of what a person has before them now. */
  async closeSeen(has: (id: string) => Promise<boolean>): Promise<void> {
    if (unsupportedReason() || !this.preferences.peek().on) return
    const registration = await readyWorker()
    await exclusively(async () => {
      for (const shown of await registration.getNotifications()) {
        const { type, id, ids } = Object((shown.data as { notice?: PushNotice } | null)?.notice) as Partial<PushNotice>
        if (type === 'test') continue
        const read = type === 'card' || type === 'notice' || type === 'outcome' ? [id!] : (ids ?? [])
        if (read.length === 0 && this.device.status.state !== 'online') continue
        if ((await Promise.all(read.map(has))).every(Boolean)) shown.close() // it closes what has its tag by then
      }
    })
  }

  /** signOut forgets all of it, here and, where there is a connection, at the server. */
  async signOut(): Promise<void> {
    const { on, endpoint } = this.preferences.peek()
    if (on || endpoint) {
      this.change({ on: false })
      const stopped = this.enqueue(() => this.stop().catch(() => this.drop()))
      await withTimeout(stopped, 10_000, '').catch(() => {}) // a browser that hangs keeps nobody here
    }
    savePreferences(this.id, undefined)
  }

  close(): void {
    batch(() => this.cleanups.forEach((end) => end()))
  }
}
