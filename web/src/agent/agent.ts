import { effect, signal, untracked, type Signal } from '@preact/signals'
import type { Device, Status } from '@hermes-mobile/sdk'
import type { Conversation } from '../conversation/conversation'
import { Calls } from './calls'
import { Sessions } from './sessions'

export interface Model {
  id: string
  name: string
  provider?: string
  current: boolean
}

/** Route is the address by which the server reaches the agent's gateway. */
export interface Route {
  /** local or remote. undefined: there is no route. */
  kind?: string
  reason: string
  since?: string
  version?: string
  /** Whether scheduled jobs can be used, and why: advertised, allowed (by the owner), or off. */
  jobs?: string
  /** For troubleshooting. It contains no secret. */
  diagnostics: string
}

/** Usage is the number of tokens that a turn used. */
export interface Usage {
  /** The id of the user's message. */
  id: string
  input_tokens: number
  output_tokens: number
  total_tokens: number
  model?: string
}

export interface Job {
  id: string
  name: string
  schedule: string
  prompt: string
  deliver: string
  paused: boolean
  next_at?: string
  last_at?: string
  last_status?: string
}

/**
 * More replies may follow the first. The page refreshes sessions and route after this pause, in
 * milliseconds.
 */
const REFRESH_DELAY = 400

/**
 * Agent holds what the agent offers besides the conversation: sessions, models, the route, and
 * usage.
 */
export class Agent {
  readonly calls: Calls
  readonly sessions: Sessions
  readonly models = signal<readonly Model[]>([])
  readonly route = signal<Route | undefined>(undefined)
  private readonly stopWatching: () => void
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(device: Device, status: Signal<Status>, conversation: Conversation, self: string, durable: boolean) {
    this.calls = new Calls(device, status)
    this.sessions = new Sessions(this.calls, conversation, self, durable)
    let before = ''
    this.stopWatching = effect(() => {
      // If the methods or the agent's state change, everything else may have changed too.
      const { state, agent, approved, capabilities } = status.value
      const now = [state, agent, approved, ...capabilities.call].join(' ')
      if (now === before) return
      before = now
      untracked(() => void this.refresh())
    })
  }

  private async refresh(): Promise<void> {
    await Promise.all([this.refreshAfterReply(), this.calls.canCall('models.list') && this.loadModels().catch(() => {})])
  }

  /** onReply refreshes the sessions and the route, which a reply may have changed. */
  onReply(toCommand: boolean): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void (toCommand ? this.refresh() : this.refreshAfterReply()), REFRESH_DELAY)
  }

  private async refreshAfterReply(): Promise<void> {
    await Promise.all([this.calls.canCall('sessions.list') && this.sessions.refresh(), this.calls.canCall('route.show') && this.loadRoute().catch(() => {})])
  }

  async loadModels(): Promise<void> {
    this.models.value = (await this.calls.call<{ models: Model[] }>('models.list')).models
  }

  /**
   * chooseModel selects the model of the conversation's turns. undefined selects the gateway's own
   * choice.
   */
  async chooseModel(model: Model | undefined): Promise<void> {
    await this.calls.call('models.choose', model ? { id: model.id, ...(model.provider && { provider: model.provider }) } : { id: '' })
    await this.loadModels()
  }

  async loadRoute(): Promise<void> {
    this.route.value = await this.calls.call<Route>('route.show')
  }

  /**
   * usage returns the token usage of a message's turn, or undefined if the agent doesn't know it.
   */
  async usage(id: string): Promise<Usage | undefined> {
    return (await this.calls.call<{ turns: Usage[] }>('usage.list')).turns.find((turn) => turn.id === id)
  }

  close(): void {
    clearTimeout(this.timer)
    this.stopWatching()
    this.sessions.close()
  }
}
