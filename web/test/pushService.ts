import { createECDH, randomBytes, type ECDH } from 'node:crypto'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import ece from 'http_ece'
import type { CDPSession, Page, Worker } from 'playwright-core'
import { until, type Visitor } from './rig'

/** What the server sent, opened with the keys of the subscription. */
export interface Sent {
  path: string
  text: string
  notice: { type: string; id?: string; ids: string[]; count: number; title?: string; body?: string; actions?: { id: string }[] }
}

/** PushService stands for that of a browser's vendor, which cannot be reached from here. Its host is for MOBILE_PUSH_HOSTS. */
export class PushService {
  static readonly host = '127.0.0.1'
  /** Endpoints that refuse what comes, with a status of HTTP. */
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

  /** next is the next notification for an endpoint. */
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

/** What a notification shows. */
export interface Shown {
  title: string
  body: string
  tag: string
  buttons: string[]
  stays: boolean
}

/** Subscriber is a browser that the push service reaches: its subscriptions are made here, and what comes for them goes to its real service worker. */
export class Subscriber {
  /** Calls of the page to the server, as they were sent. */
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

  /** permit has the browser allow notifications, as a person would. */
  async permit(): Promise<void> {
    await this.visitor.context.grantPermissions(['notifications'], { origin: new URL(this.visitor.server.url).origin })
  }

  /** called are the parameters of the calls of a method. */
  called(method: string): Record<string, unknown>[] {
    return this.calls.filter((call) => call.method === method).map(({ params }) => params)
  }

  async worker(): Promise<Worker> {
    await until(() => this.visitor.context.serviceWorkers().length > 0, 'there is a service worker')
    return this.visitor.context.serviceWorkers()[0]!
  }

  /** attach finds the service worker's registration, by way of any page of its server. */
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

  /** deliver brings something to the service worker as the browser would, and waits until it is there: one that is about to be stopped misses it. */
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

  /** shown waits for its turn as the worker does: to list notifications while one is being shown has Chromium forget that one. */
  async shown(): Promise<Shown[]> {
    return (await this.worker()).evaluate(async () => {
      const { registration } = self as unknown as { registration: ServiceWorkerRegistration }
      const list = (await navigator.locks.request('notifications', () => registration.getNotifications())) as (Notification & { actions: { title: string }[] })[]
      return list.map(({ title, body, tag, actions, requireInteraction }) => ({ title, body, tag, buttons: actions.map((one) => one.title), stays: requireInteraction }))
    })
  }

  /** shows waits until just these bodies are shown. */
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

  /** press clicks a notification, or one of its buttons. It gives the address that the worker wants to open, where there is one. */
  async press(body: string, action = ''): Promise<string> {
    return (await this.worker()).evaluate(async ({ body, action }) => {
      const scope = self as unknown as { registration: ServiceWorkerRegistration; clients: { openWindow(url: string): Promise<unknown> } }
      const notification = (await navigator.locks.request('notifications', () => scope.registration.getNotifications())).find((one) => one.body.startsWith(body))
      if (!notification) throw new Error('no such notification: ' + body)
      let opened = ''
      // What a test makes is no click of a person: the browser opens nothing for it, and does not wait.
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
