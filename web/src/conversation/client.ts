import { MemoryStore, open, type Device, type Event, type Status } from '@hermes-mobile/sdk'
import { signal, type Signal } from '@preact/signals'
import { Agent } from '../agent/agent'
import { shownBefore } from '../agent/sessions'
import { AttachedStore } from '../keep/attached'
import { openDatabase } from '../keep/database'
import { History } from '../keep/history'
import type { Profile } from '../keep/profile'
import { Notifying } from '../notify/notifying'
import { DiskStore } from '../keep/store'
import { inform } from '../view/notice'
import { t } from '../words/words'
import { Attachments } from './attachments'
import { Conversation } from './conversation'
import { keys, type DeviceItem, type TextItem } from './item'
import { Receiving } from './receive'
import { Sending } from './send'

/** What opens a connection beside the profile. */
export interface Entrance {
  token?: string
  pair?: string
}

/** Talk is one device's connection with all that is shown of it. */
export class Talk {
  readonly status: Signal<Status>
  readonly activity: Signal<{ typing: boolean; avatar: string }>
  readonly sending: Sending
  readonly notifying: Notifying
  readonly agent: Agent
  private readonly receiving: Receiving
  private readonly look = () => this.lookedAt()
  private closed = false

  private constructor(
    readonly profile: Profile,
    readonly device: Device,
    readonly conversation: Conversation,
    readonly attachments: Attachments,
    /** False: this browser keeps nothing. */
    readonly durable: boolean,
    store: DiskStore | undefined,
  ) {
    this.status = signal(device.status)
    this.activity = signal(device.activity)
    this.sending = new Sending(device, conversation, store)
    this.notifying = new Notifying(device, profile.id)
    this.receiving = new Receiving(device, conversation, this.sending, profile.id)
    device.on('status', ({ status }) => {
      const before = this.status.peek()
      this.status.value = status
      if (status.agent === 'online' && before.agent === 'away') void this.sending.agentIsBack()
    })
    device.on('activity', ({ typing, avatar }) => (this.activity.value = { typing, avatar }))
    this.agent = new Agent(device, this.status, conversation, profile.id, durable)
    document.addEventListener('visibilitychange', this.look)
  }

  /** start shows what is kept and begins to connect. */
  static async start(profile: Profile, { token, pair }: Entrance = {}): Promise<Talk> {
    const db = await openDatabase(profile.url, profile.id).catch(() => undefined)
    const store = db && new DiskStore(db)
    if (token) await store?.setToken(token)
    const conversation = new Conversation(new History(db))
    if (db) conversation.view.value = shownBefore(profile.id)
    await conversation.load()
    const attachments = new Attachments(new AttachedStore(db))
    await attachments.load(conversation.history)
    const device = await open({
      url: profile.url, pair, tools: true, notices: true, store: store ?? new MemoryStore(),
      ...(!store && token && { token }),
      device: { id: profile.id, name: profile.name, platform: 'web', app: 'hermes-mobile-web' },
      ...(profile.user && { user: { id: profile.user, name: profile.user } }),
    })
    const talk = new Talk(profile, device, conversation, attachments, Boolean(db), store)
    await talk.sending.restore()
    talk.receiving.fetchLinks()
    device.on('*', (event) => talk.take(event))
    talk.db = db
    talk.lookedAt()
    return talk
  }

  private db: IDBDatabase | undefined

  private async take(event: Event): Promise<void> {
    try {
      await this.receiving.take(event)
    } catch (error) {
      inform(t('notStored'))
      throw error // the server keeps what is not on the disk here, and says it again
    }
    if (event.type === 'message' && event.final) this.agent.replied(this.isCommand(event.replyTo))
    if (event.type === 'message' || event.type === 'file' || event.type === 'card' || event.type === 'echo' || event.type === 'notice') this.lookedAt()
  }

  /** isCommand tells whether a message of the person is one for the agent's program and not for its model. */
  private isCommand(id: string): boolean {
    return (this.conversation.get(keys.mine(id)) as TextItem | undefined)?.text?.startsWith('/') ?? false
  }

  /** lookedAt says that a person sees what has come, if the page is visible. The cursor moves after the event, so a moment later. */
  private lookedAt(): void {
    setTimeout(() => {
      if (this.closed || document.visibilityState !== 'visible') return
      this.device.seen()
      void this.notifying.tidy((id) => this.has(id)).catch(() => {}) // then the person closes them
    }, 100)
  }

  /** keyOf names what the server calls so in the history, where it has come; undefined: it has not. */
  async keyOf(id: string): Promise<string | undefined> {
    for (const key of [keys.card(id), keys.agent(id), keys.device(id)]) if (this.conversation.at(key) || (await this.conversation.history.get(key))) return key
    return undefined
  }

  /** revoke shuts out another device of the person, which all news of it then say. It throws what the server says. */
  async revoke(id: string): Promise<void> {
    await this.device.revokeDevice(id, { signal: AbortSignal.timeout(20_000) })
    for (const item of this.conversation.all()) if (item.kind === 'device' && item.device.id === id) await this.conversation.change<DeviceItem>(item.key, { revoked: true })
  }

  private async has(id: string): Promise<boolean> {
    return (await this.keyOf(id)) !== undefined
  }

  async close(): Promise<void> {
    this.closed = true
    document.removeEventListener('visibilitychange', this.look)
    this.notifying.close()
    this.agent.close()
    await this.device.close()
    this.db?.close()
  }
}
