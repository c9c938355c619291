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

/**
 * NotificationState is the state of notifications on this device. `pending`: switched on, and the
 * server learns it with the next connection.
 */
export type NotificationState = Exclude<Unsupported, ''> | 'unknown' | 'serverOff' | 'denied' | 'off' | 'pending' | 'on' | 'failed'

/** TestState is the progress of a test. `sent`: the push service accepted it. */
export type TestState = { state: 'none' | 'running' | 'sent' | 'arrived' | 'missing' } | { state: 'failed'; reason: string }

/** How long a test notification may take to arrive, in milliseconds. */
const ARRIVAL_TIMEOUT = 20_000

/** WorkerMessage is a message from the service worker. */
interface WorkerMessage {
  show?: string
  fetch?: true
  renew?: true
  arrived?: true
}

/**
 * Notifications manages the notifications of one device: it brings browser and server to the user's
 * preferences.
 */
export class Notifications {
  readonly preferences
  readonly testState = signal<TestState>({ state: 'none' })
  /** A change at the browser and the server is in progress. */
  readonly busy = signal(false)
  /** The browser's permission request is open. */
  readonly asking = signal(false)
  readonly problem = signal('')
  readonly state = computed(() => this.computeState())
  private readonly permission = signal(unsupportedReason() ? 'default' : Notification.permission)
  /** undefined: the server hasn't answered yet. */
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
    listen(window, 'storage', ({ key }: StorageEvent) => key === preferencesKey(id) && this.reload()) // another tab changed the preferences
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

  /** onStatus adapts to the state of the connection. */
  private onStatus(): void {
    const { state, agent, approved, capabilities } = this.device.status
    if (agent !== '' && approved) this.serverOffers.value = capabilities.call.includes('push.register')
    const connected = state === 'online' && approved && this.serverOffers.peek() === true
    const came = connected && !this.connected
    this.connected = connected
    if (came) void this.sync()
    // A device without access gets no notifications. It subscribes again when it has access.
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

  /** switchOn asks for the permission. Call it on a click. */
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

  /** update changes the content or the quiet hours. */
  async update(changes: Pick<Partial<NotificationPreferences>, 'content' | 'quiet'>): Promise<void> {
    this.change(changes)
    await this.sync()
  }

  /**
   * adopt takes over the preferences of an earlier device of this browser, which had the
   * permission.
   */
  async adopt({ content, quiet }: NotificationPreferences): Promise<void> {
    this.change({ on: true, content, quiet })
    await this.sync()
  }

  private change(changes: Partial<NotificationPreferences>): void {
    this.preferences.value = { ...this.preferences.peek(), ...changes }
    savePreferences(this.id, this.preferences.peek())
  }

  /** enqueue runs changes one after the other. */
  private enqueue(change: () => Promise<unknown>): Promise<void> {
    const run = this.queueTail.then(async () => {
      this.busy.value = true
      try {
        await change()
        this.problem.value = ''
      } catch (error) {
        // The next connection repeats what a lost one interrupted.
        if (this.device.status.state === 'online') this.problem.value = errorText(error)
      } finally {
        this.busy.value = false
      }
    })
    this.queueTail = run
    return run
  }

  /** sync brings browser and server to the user's preferences, if there is a connection. */
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

  /**
   * stop ends the subscription at the server and in the browser. Without a connection, the push
   * service tells the server.
   */
  private async stop(): Promise<void> {
    const { endpoint } = this.preferences.peek()
    if (this.connected && endpoint) await this.device.call('push.unregister', { endpoint }, { signal: AbortSignal.timeout(5000) })
    await this.drop()
  }

  /** drop ends the subscription in the browser and deletes its notifications and stored state. */
  private async drop(): Promise<void> {
    await unsubscribe()
    await clearWorkerState(pageBase())
    const registration = await readyWorker()
    await exclusively(async () => (await registration.getNotifications()).forEach((shown) => shown.close()))
    this.change({ endpoint: '' })
  }

  /** test has the server send a notification now. */
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
    if (this.testState.peek().state !== 'running') return // it arrived before the server answered
    this.testState.value = { state: 'sent' }
    setTimeout(() => this.testState.peek().state === 'sent' && (this.testState.value = { state: 'missing' }), ARRIVAL_TIMEOUT)
  }

  /** resubscribe replaces a subscription that the push service no longer knows. */
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
      // If another tab has the connection, or the device has no access, this page can't fetch
      // anything.
      const ends = ['replaced', 'noAccess'].includes(this.device.status.state)
      if (!ends) this.device.reconnect()
      const reached = ends ? Promise.reject() : this.device.ping({ signal: AbortSignal.timeout(5000) })
      reached.then(() => ports[0]?.postMessage(true), () => ports[0]?.postMessage(false))
    }
  }

  /** closeSeen closes the notifications about items that the user now sees. */
  async closeSeen(has: (id: string) => Promise<boolean>): Promise<void> {
    if (unsupportedReason() || !this.preferences.peek().on) return
    const registration = await readyWorker()
    await exclusively(async () => {
      for (const shown of await registration.getNotifications()) {
        const { type, id, ids } = Object((shown.data as { notice?: PushNotice } | null)?.notice) as Partial<PushNotice>
        if (type === 'test') continue
        const read = type === 'card' || type === 'notice' || type === 'outcome' ? [id!] : (ids ?? [])
        if (read.length === 0 && this.device.status.state !== 'online') continue
        if ((await Promise.all(read.map(has))).every(Boolean)) shown.close() // this closes whichever notification has its tag by then
      }
    })
  }

  /** signOut ends notifications here and, if there is a connection, at the server. */
  async signOut(): Promise<void> {
    const { on, endpoint } = this.preferences.peek()
    if (on || endpoint) {
      this.change({ on: false })
      const stopped = this.enqueue(() => this.stop().catch(() => this.drop()))
      await withTimeout(stopped, 10_000, '').catch(() => {}) // a browser that hangs must not block the sign-out
    }
    savePreferences(this.id, undefined)
  }

  close(): void {
    batch(() => this.cleanups.forEach((end) => end()))
  }
}
