import { MemoryStore, open, type Device, type Event, type Status } from '@hermes-mobile/sdk'
import { signal, type Signal } from '@preact/signals'
import { Agent } from '../agent/agent'
import { savedView } from '../agent/sessions'
import { AttachmentStore } from '../storage/attachmentStore'
import { openDatabase } from '../storage/database'
import { History } from '../storage/history'
import type { Profile } from '../storage/profile'
import { Notifications } from '../notify/notifications'
import { DeviceStore } from '../storage/deviceStore'
import { showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import { Attachments } from './attachments'
import { Conversation } from './conversation'
import { keys, type DeviceItem, type TextItem } from './item'
import { Receiver } from './receiver'
import { Sender } from './sender'

/** Credentials open a connection for the first time. */
export interface Credentials {
  token?: string
  pair?: string
}

/** Client is one device's connection and everything the page shows of it. */
export class Client {
  readonly status: Signal<Status>
  readonly activity: Signal<{ typing: boolean; avatar: string }>
  readonly sender: Sender
  readonly notifications: Notifications
  readonly agent: Agent
  private readonly receiver: Receiver
  private readonly onVisibilityChange = () => this.markSeen()
  private closed = false

  private constructor(
    readonly profile: Profile,
    readonly device: Device,
    readonly conversation: Conversation,
    readonly attachments: Attachments,
    /** false: this browser stores nothing. */
    readonly durable: boolean,
    store: DeviceStore | undefined,
  ) {
    this.status = signal(device.status)
    this.activity = signal(device.activity)
    this.sender = new Sender(device, conversation, store)
    this.notifications = new Notifications(device, profile.id)
    this.receiver = new Receiver(device, conversation, this.sender, profile.id)
    device.on('status', ({ status }) => {
      const before = this.status.peek()
      this.status.value = status
      if (status.agent === 'online' && before.agent === 'away') void this.sender.onAgentOnline()
    })
    device.on('activity', ({ typing, avatar }) => (this.activity.value = { typing, avatar }))
    this.agent = new Agent(device, this.status, conversation, profile.id, durable)
    document.addEventListener('visibilitychange', this.onVisibilityChange)
  }

  /** start shows the stored conversation and starts to connect. */
  static async start(profile: Profile, { token, pair }: Credentials = {}): Promise<Client> {
    const db = await openDatabase(profile.url, profile.id).catch(() => undefined)
    const store = db && new DeviceStore(db)
    if (token) await store?.setToken(token)
    const conversation = new Conversation(new History(db))
    if (db) conversation.view.value = savedView(profile.id)
    await conversation.load()
    const attachments = new Attachments(new AttachmentStore(db))
    await attachments.load(conversation.history)
    const device = await open({
      url: profile.url, pair, tools: true, notices: true, store: store ?? new MemoryStore(),
      ...(!store && token && { token }),
      device: { id: profile.id, name: profile.name, platform: 'web', app: 'hermes-mobile-web' },
      ...(profile.user && { user: { id: profile.user, name: profile.user } }),
    })
    const client = new Client(profile, device, conversation, attachments, Boolean(db), store)
    await client.sender.resume()
    client.receiver.fetchLinks()
    device.on('*', (event) => client.handle(event))
    client.db = db
    client.markSeen()
    return client
  }

  private db: IDBDatabase | undefined

  private async handle(event: Event): Promise<void> {
    try {
      await this.receiver.handle(event)
    } catch (error) {
      showToast(t('messageNotSaved'))
      throw error // the server keeps an event that isn't stored here and sends it again
    }
    if (event.type === 'message' && event.final) this.agent.onReply(this.isCommand(event.replyTo))
    if (event.type === 'message' || event.type === 'file' || event.type === 'card' || event.type === 'echo' || event.type === 'notice') this.markSeen()
  }

  /** isCommand reports whether a message is a command for Hermes, not for the model. */
  private isCommand(id: string): boolean {
    return (this.conversation.get(keys.mine(id)) as TextItem | undefined)?.text?.startsWith('/') ?? false
  }

  /**
   * markSeen tells the server that the user sees the conversation, if the page is visible. It waits
   * a moment, because the cursor moves after the event.
   */
  private markSeen(): void {
    setTimeout(() => {
      if (this.closed || document.visibilityState !== 'visible') return
      this.device.seen()
      void this.notifications.closeSeen((id) => this.hasItem(id)).catch(() => {}) // the user can close them
    }, 100)
  }

  /** keyOf returns the history key of the item with this id, or undefined if it hasn't arrived. */
  async keyOf(id: string): Promise<string | undefined> {
    for (const key of [keys.card(id), keys.agent(id), keys.device(id)]) if (this.conversation.signalFor(key) || (await this.conversation.history.get(key))) return key
    return undefined
  }

  /**
   * revoke revokes another device of the user and marks all notices about it. It throws the
   * server's error.
   */
  async revoke(id: string): Promise<void> {
    await this.device.revokeDevice(id, { signal: AbortSignal.timeout(20_000) })
    for (const item of this.conversation.shownItems()) if (item.kind === 'device' && item.device.id === id) await this.conversation.change<DeviceItem>(item.key, { revoked: true })
  }

  private async hasItem(id: string): Promise<boolean> {
    return (await this.keyOf(id)) !== undefined
  }

  async close(): Promise<void> {
    this.closed = true
    document.removeEventListener('visibilitychange', this.onVisibilityChange)
    this.notifications.close()
    this.agent.close()
    await this.device.close()
    this.db?.close()
  }
}
