import { batch, computed, effect, signal, untracked } from '@preact/signals'
import { readLocal, writeLocal } from '../storage/localStorage'
import type { Conversation, View } from '../conversation/conversation'
import type { Calls } from './calls'
import { fetchPage, sessionHistory, type HistoryPage } from './sessionHistory'

/** A Hermes session. */
export interface Session {
  id: string
  title: string
  preview: string
  /** The time of the last activity, RFC 3339. */
  at: string
  messages: number
  source: string
  current: boolean
}

interface SessionPage {
  sessions: Session[]
  cursor?: string
}

/** The number of sessions in a request. */
const PAGE_SIZE = 30

/** viewKey is the localStorage key of the session that a device shows. */
export const viewKey = (device: string) => 'hermes.session.' + device

/**
 * Sessions holds the Hermes sessions that this conversation can open, the most recently active
 * first. The conversation continues in one of them, the current one.
 */
export class Sessions {
  readonly list = signal<readonly Session[]>([])
  /** There are older ones. */
  readonly hasMore = computed(() => this.cursor.value !== '')
  /** undefined: not loaded yet, or the next message starts one. */
  readonly current = computed(() => this.list.value.find((session) => session.current))
  readonly loaded = signal(false)
  /** Why the list couldn't be loaded. */
  readonly problem = signal<unknown>(undefined)
  private readonly cursor = signal('')
  private readonly cleanups: (() => void)[]

  constructor(
    private readonly calls: Calls,
    private readonly conversation: Conversation,
    device: string,
    /**
     * Whether the browser stores the conversation, so that a view can be restored after a reload.
     */
    durable: boolean,
  ) {
    this.cleanups = [
      effect(() => {
        const view = conversation.view.value
        if (durable) writeLocal(viewKey(device), view ? JSON.stringify(view) : '')
      }),
      // Restore the view from before a reload once the agent can be asked.
      effect(() => {
        if (calls.canCall('sessions.history')) untracked(() => this.resume())
      }),
    ]
  }

  private resumed = false

  /** resume loads the history of the session that was shown before a reload. */
  private resume(): void {
    const view = this.conversation.view.peek()
    if (!view || this.resumed) return
    this.resumed = true
    this.conversation.setHistory(sessionHistory(this.calls, view.session, view.last))
    void this.conversation.loadEarlier().catch((error: { code?: string }) => {
      this.resumed = false // try again with the next connection or when the user scrolls
      if (error.code === 'not_found') return this.conversation.closeView() // another device deleted it
    })
  }

  close(): void {
    this.cleanups.forEach((end) => end())
  }

  /** refresh loads the newest sessions, as many as are shown. */
  async refresh(): Promise<void> {
    try {
      const { sessions, cursor = '' } = await this.calls.call<SessionPage>('sessions.list', { limit: Math.max(PAGE_SIZE, Math.min(200, this.list.peek().length)) })
      batch(() => {
        this.list.value = sessions
        this.cursor.value = cursor
        this.loaded.value = true
        this.problem.value = undefined
      })
    } catch (error) {
      this.problem.value = error
    }
  }

  /** loadOlder adds the next page. */
  async loadOlder(): Promise<void> {
    const { sessions, cursor = '' } = await this.calls.call<SessionPage>('sessions.list', { limit: PAGE_SIZE, cursor: this.cursor.peek() })
    const had = new Set(this.list.peek().map(({ id }) => id))
    batch(() => {
      this.list.value = [...this.list.peek(), ...sessions.filter(({ id }) => !had.has(id))]
      this.cursor.value = cursor
    })
  }

  /** open continues the conversation in a session and shows its history. */
  async open({ id, title, preview }: Session): Promise<void> {
    const first: HistoryPage = this.calls.canCall('sessions.history') ? await fetchPage(this.calls, id) : { messages: [] }
    await this.calls.call('sessions.open', { id })
    const last = Math.max(0, ...first.messages.map((message) => message.id))
    this.resumed = true
    await this.conversation.openView({ session: id, title: title || preview, last }, sessionHistory(this.calls, id, last, first))
    await this.refresh()
  }

  /** create starts a session, which has no history yet. */
  async create(): Promise<void> {
    const { session } = await this.calls.call<{ session: Session }>('sessions.create')
    this.resumed = true
    await this.conversation.openView({ session: session.id, title: session.title, last: 0 }, sessionHistory(this.calls, session.id, 0, { messages: [] }))
    await this.refresh()
  }

  async rename(session: Session, title: string): Promise<void> {
    const answer = await this.calls.call<{ session: Session }>('sessions.rename', { id: session.id, title })
    const view = this.conversation.view.peek()
    if (view?.session === session.id) this.conversation.view.value = { ...view, title: answer.session.title }
    await this.refresh()
  }

  /** fork copies a session. The conversation stays in the current one. */
  async fork(session: Session): Promise<Session> {
    const answer = await this.calls.call<{ session: Session }>('sessions.fork', { id: session.id })
    await this.refresh()
    return answer.session
  }

  async remove(session: Session): Promise<void> {
    await this.calls.call('sessions.delete', { id: session.id })
    if (this.conversation.view.peek()?.session === session.id) await this.conversation.closeView()
    await this.refresh()
  }
}

/** savedView returns the session that the device showed before a reload. */
export function savedView(device: string): View | undefined {
  try {
    const view = JSON.parse(readLocal(viewKey(device))) as View
    return view.session && Number.isFinite(view.floor) && Number.isFinite(view.last) ? view : undefined
  } catch {
    return undefined
  }
}
