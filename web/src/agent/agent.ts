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

/** Where the agent's gateway is reached. */
export interface Route {
  /** local or remote; undefined: no way is open. */
  kind?: string
  reason: string
  since?: string
  version?: string
  /** Whether scheduled jobs can be used, and on whose word: advertised, allowed (by the owner) or off. */
  jobs?: string
  /** For whoever looks for a fault. It holds no secret. */
  diagnostics: string
}

/** What a turn cost. */
export interface Usage {
  /** Of the person's message. */
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

/** After a reply there may be more of them: what is shown beside is asked for anew once it is quiet. */
const REFRESH_DELAY = 400

/** Agent is what the agent offers beside the conversation, where it does. */
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
      // The methods, and whether the agent is there: with either everything may be different.
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

  /** replied: what the agent said may have changed the sessions, and the way it came is known anew. */
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

  /** choose has the turns of the conversation use a model; undefined: the one of the gateway's own choice. */
  async chooseModel(model: Model | undefined): Promise<void> {
    await this.calls.call('models.choose', model ? { id: model.id, ...(model.provider && { provider: model.provider }) } : { id: '' })
    await this.loadModels()
  }

  async loadRoute(): Promise<void> {
    this.route.value = await this.calls.call<Route>('route.show')
  }

  /** usage is what the turn of a message cost; undefined: that is not known, or not any more. */
  async usage(id: string): Promise<Usage | undefined> {
    return (await this.calls.call<{ turns: Usage[] }>('usage.list')).turns.find((turn) => turn.id === id)
  }

  close(): void {
    clearTimeout(this.timer)
    this.stopWatching()
    this.sessions.close()
  }
}
