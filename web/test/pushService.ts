import { createECDH, randomBytes, type ECDH } from 'node:crypto'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import ece from 'http_ece'
import type { CDPSession, Page, Worker } from 'playwright-core'
import { until, type Visitor } from './rig'

/** A notification from the server, decrypted with the subscription's keys. */
export interface Sent {
  path: string
  text: string
  notice: { type: string; id?: string; ids: string[]; count: number; title?: string; body?: string; actions?: { id: string }[] }
}

/**
 * PushService plays a browser vendor's push service, which can't be reached from here. Its host is
 * for MOBILE_PUSH_HOSTS.
 */
export class PushService {
  static readonly host = '127.0.0.1'
  /** Endpoints that reject notifications, with their HTTP status. */
  readonly refusing = new Map<string, number>()
  private readonly sent: Sent[] = []
  private readonly keys = new Map<string, { ecdh: ECDH; auth: string }>()

  private constructor(private readonly http: HttpServer) {}

  static async start(): Promise<PushService> {
    const http = createServer()
    const service = new PushService(http)
    http.on('request', async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const path = request.url ?? ''
      const keys = service.keys.get(path)
      const refused = [...service.refusing].find(([endpoint]) => endpoint.endsWith(path))?.[1]
      if (keys && !refused) {
        const text = ece.decrypt(Buffer.concat(chunks), { version: 'aes128gcm', privateKey: keys.ecdh, authSecret: keys.auth }).toString()
        service.sent.push({ path, text, notice: JSON.parse(text) as Sent['notice'] })
      }
      response.writeHead(refused ?? (keys ? 201 : 404)).end()
    })
    await new Promise<void>((resolve) => http.listen(0, PushService.host, resolve))
    return service
  }

  subscribe(): { endpoint: string; p256dh: string; auth: string } {
    const ecdh = createECDH('prime256v1')
    const [p256dh, auth, path] = [ecdh.generateKeys('base64url'), randomBytes(16).toString('base64url'), `/endpoint/${this.keys.size + 1}`]
    this.keys.set(path, { ecdh, auth })
    return { endpoint: `http://${PushService.host}:${(this.http.address() as AddressInfo).port}${path}`, p256dh, auth }
  }

  /** next returns the next notification for an endpoint. */
  async next(endpoint: string): Promise<Sent> {
    let found = -1
    await until(() => (found = this.sent.findIndex(({ path }) => endpoint.endsWith(path))) >= 0, 'a notification comes for ' + endpoint)
    return this.sent.splice(found, 1)[0]!
  }

  async end(): Promise<void> {
    this.http.closeAllConnections()
    await new Promise((resolve) => this.http.close(resolve))
  }
}

/** The content of a shown notification. */
export interface Shown {
  title: string
  body: string
  tag: string
  buttons: string[]
  stays: boolean
}

/**
 * Subscriber is a browser that this push service can reach: it creates subscriptions and delivers
 * notifications to the browser's real service worker.
 */
export class Subscriber {
  /** The page's calls to the server, as they were sent. */
  readonly calls: { method: string; params: Record<string, unknown> }[] = []
  endpoint: string
  private session: CDPSession | undefined
  private registration = ''

  private constructor(
    readonly visitor: Visitor,
    readonly service: PushService,
    first: ReturnType<PushService['subscribe']>,
  ) {
    this.endpoint = first.endpoint
  }

  static async come(visitor: Visitor, service: PushService): Promise<Subscriber> {
    const subscription = service.subscribe()
    const subscriber = new Subscriber(visitor, service, subscription)
    await visitor.context.addInitScript((first) => {
      const at = 'test.subscription'
      const kept = () => JSON.parse(localStorage.getItem(at) ?? 'null') as { key: string; made: typeof first } | null
      const bytes = (key: string) => Uint8Array.from(atob(key.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0)).buffer
      const give = ({ key, made }: NonNullable<ReturnType<typeof kept>>) => ({
        endpoint: made.endpoint, options: { userVisibleOnly: true, applicationServerKey: bytes(key) },
        toJSON: () => ({ endpoint: made.endpoint, keys: { p256dh: made.p256dh, auth: made.auth } }),
        unsubscribe: async () => (localStorage.removeItem(at), true),
      })
      PushManager.prototype.getSubscription = async () => (kept() ? give(kept()!) : null) as PushSubscription | null
      PushManager.prototype.subscribe = async (options) => {
        const key = String(options!.applicationServerKey)
        if (bytes(key).byteLength !== 65) throw new DOMException('not a key', 'InvalidAccessError')
        localStorage.setItem(at, JSON.stringify({ key, made: first }))
        return give(kept()!) as unknown as PushSubscription
      }
    }, subscription)
    visitor.context.on('page', (page) => page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => {
      const frame = JSON.parse(String(payload)) as { t: string; method: string; params: Record<string, unknown> }
      if (frame.t === 'call') subscriber.calls.push(frame)
    })))
    return subscriber
  }

  /** permit grants the notification permission, as a user would. */
  async permit(): Promise<void> {
    await this.visitor.context.grantPermissions(['notifications'], { origin: new URL(this.visitor.server.url).origin })
  }

  /** called returns the parameters of a method's calls. */
  called(method: string): Record<string, unknown>[] {
    return this.calls.filter((call) => call.method === method).map(({ params }) => params)
  }

  async worker(): Promise<Worker> {
    await until(() => this.visitor.context.serviceWorkers().length > 0, 'there is a service worker')
    return this.visitor.context.serviceWorkers()[0]!
  }

  /** attach finds the service worker's registration, through any page of its server. */
  async attach(page: Page): Promise<void> {
    await this.session?.detach().catch(() => {})
    await page.evaluate(async () => void (await navigator.serviceWorker.ready))
    this.session = await this.visitor.context.newCDPSession(page)
    this.session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      for (const { registrationId, scopeURL, isDeleted } of registrations) if (scopeURL === this.visitor.server.url && !isDeleted) this.registration = registrationId
    })
    await this.session.send('ServiceWorker.enable')
    await until(() => this.registration, 'the service worker is registered')
  }

  /**
   * deliver brings data to the service worker as the browser would. It waits for the worker,
   * because one that is about to stop misses it.
   */
  async deliver(data: string): Promise<void> {
    const arrived = async () => (await this.worker()).evaluate(() => {
      const scope = self as unknown as { arrived?: number }
      if (scope.arrived === undefined) {
        scope.arrived = 0
        self.addEventListener('push', () => scope.arrived!++)
      }
      return scope.arrived
    })
    const before = await arrived()
    await this.session!.send('ServiceWorker.deliverPushMessage', { origin: this.visitor.server.url, registrationId: this.registration, data })
    await until(async () => (await arrived()) > before, 'the service worker has what was pushed')
  }

  /** receive takes the next notification from the push service and delivers it. */
  async receive(): Promise<Sent['notice']> {
    const { notice, text } = await this.service.next(this.endpoint)
    await this.deliver(text)
    return notice
  }

  /**
   * shown waits for the same lock as the worker: if notifications are listed while one is being
   * shown, Chromium forgets it.
   */
  async shown(): Promise<Shown[]> {
    return (await this.worker()).evaluate(async () => {
      const { registration } = self as unknown as { registration: ServiceWorkerRegistration }
      const list = (await navigator.locks.request('notifications', () => registration.getNotifications())) as (Notification & { actions: { title: string }[] })[]
      return list.map(({ title, body, tag, actions, requireInteraction }) => ({ title, body, tag, buttons: actions.map((one) => one.title), stays: requireInteraction }))
    })
  }

  /** shows waits until exactly these bodies are shown. */
  async shows(...bodies: string[]): Promise<void> {
    let now: string[] = []
    await until(async () => (now = (await this.shown()).map(({ body }) => body).sort()).join('|') === [...bodies].sort().join('|'), `these are shown: ${bodies.join(' | ')}`)
      .catch((error: Error) => { throw new Error(`${error.message}; shown are: ${now.join(' | ')}`) })
  }

  /** show shows a notification as the worker would. */
  async show(body: string, notice: object): Promise<void> {
    await (await this.worker()).evaluate(async ({ body, notice }) => {
      const { registration } = self as unknown as { registration: ServiceWorkerRegistration }
      await navigator.locks.request('notifications', () => registration.showNotification('Hermes', { body, data: { notice } }))
    }, { body, notice })
  }

  /**
   * press clicks a notification or one of its buttons. It returns the URL that the worker wants to
   * open, if any.
   */
  async press(body: string, action = ''): Promise<string> {
    return (await this.worker()).evaluate(async ({ body, action }) => {
      const scope = self as unknown as { registration: ServiceWorkerRegistration; clients: { openWindow(url: string): Promise<unknown> } }
      const notification = (await navigator.locks.request('notifications', () => scope.registration.getNotifications())).find((one) => one.body.startsWith(body))
      if (!notification) throw new Error('no such notification: ' + body)
      let opened = ''
      // A click from a test isn't a user gesture: the browser opens nothing for it and doesn't
      // wait.
      scope.clients.openWindow = async (url) => void (opened = url)
      const Click = (self as unknown as { NotificationEvent: new (type: string, init: object) => Event & { waitUntil: (done: Promise<unknown>) => void } }).NotificationEvent
      const click = new Click('notificationclick', { notification, action })
      let work: Promise<unknown> = Promise.resolve()
      click.waitUntil = (done) => (work = done)
      self.dispatchEvent(click)
      await work
      return opened
    }, { body, action })
  }
}
