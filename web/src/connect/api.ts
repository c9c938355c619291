import { signal } from '@preact/signals'

/** Whether this is the page of the direct client, which is set up here. */
export const isDirectClient = document.querySelector<HTMLMetaElement>('meta[name=hermes-app]')?.content === '1'

export type Step = 'welcome' | 'remote' | 'local' | 'auth' | 'unlock' | 'test' | 'done'
export type Mode = 'none' | 'bearer' | 'password'
export type ProblemCode = 'invalid' | 'missing' | 'not_https' | 'lost' | 'passphrase' | 'unreachable' | 'no_name' | 'slow' | 'certificate' | 'key_changed' | 'sign_in' | 'other' | 'not_tried' | 'plain_http'

export interface Problem {
  field: string
  code: ProblemCode
  text: string
}

export interface Attempt {
  kind: 'local' | 'remote'
  host: string
  ok: boolean
  used: boolean
  version?: string
  code?: ProblemCode
  text?: string
  pin?: string
  certificate?: string
  /** The setup can continue without this address. */
  may_go?: boolean
}

export interface State {
  step: Step
  editing: boolean
  remote: string
  local: string
  insecure: boolean
  auth: Mode
  username: string
  kept: boolean
  /**
   * Whether the user allowed scheduled jobs that the gateway doesn't advertise. Empty: not answered
   * yet.
   */
  jobs: '' | 'on' | 'off'
  no_jobs: boolean
  vault: { kind: 'keyring' | 'file' | 'key'; state: 'ready' | 'closed' | 'unmade' | 'lost' }
  problems: Problem[]
  result?: { passed: boolean; attempts: Attempt[] }
}

export interface Action {
  do: string
  remote?: string
  local?: string
  insecure?: boolean
  auth?: Mode
  username?: string
  secret?: string
  kind?: string
  pin?: string
  jobs?: 'on' | 'off'
}

/** The state of the setup. undefined: unknown. */
export const setupState = signal<State | undefined>(undefined)
/** Why the state is unknown: the program doesn't answer, or doesn't recognize this browser. */
export const lostReason = signal<'' | 'gone' | 'stranger'>('')
/** The user is going through the setup in this tab, so the page shows its last step. */
export const wizardOpen = signal(false)

async function request<T>(path: string, body?: object): Promise<T> {
  let response: Response
  try {
    response = await fetch('./app/' + path, body ? { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) } : { cache: 'no-store' })
  } catch (error) {
    lostReason.value = 'gone'
    throw error
  }
  if (response.status === 401) lostReason.value = 'stranger'
  const answer = (await response.json().catch(() => ({ message: response.statusText }))) as T & { message?: string }
  if (!response.ok) throw new Error(answer.message)
  lostReason.value = ''
  return answer
}

/** loadState fetches the state of the setup. */
export async function loadState(): Promise<void> {
  const state = await request<State>('state').catch(() => undefined)
  if (state) applyState(state)
}

/** submit performs a step of the setup. */
export async function submit(action: Action): Promise<State> {
  const state = await request<State>('setup', action)
  applyState(state)
  return state
}

function applyState(state: State): void {
  if (state.step !== 'done') wizardOpen.value = true
  setupState.value = state
}

/** requestPairingCode returns a pairing code for this page. */
export async function requestPairingCode(): Promise<string> {
  return (await request<{ pair: string }>('device', {})).pair
}

export interface Diagnostics {
  text: string
  gateway: { route: { kind: 'local' | 'remote'; reason: string } | null } | null
}

export const loadDiagnostics = (connect: boolean): Promise<Diagnostics> => (connect ? request<Diagnostics>('reconnect', {}) : request<Diagnostics>('diagnostics'))

/**
 * reportForeground tells the program when the page becomes visible, because the route to the
 * gateway may have changed.
 */
export function reportForeground(): void {
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState !== 'visible') return
    void request('foreground', {}).then(loadState, () => {})
  })
}
