import { signal } from '@preact/signals'

/** The page is that of the direct client on this machine, which sets itself up. */
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
  /** The setup can go on without this address. */
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
  /** What the person said to scheduled jobs that the gateway does not advertise; empty: nothing yet. */
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

/** Where the setup stands; undefined: not known. */
export const setupState = signal<State | undefined>(undefined)
/** Why it is not known: the program does not answer, or does not know this browser (any more). */
export const lostReason = signal<'' | 'gone' | 'stranger'>('')
/** The person goes through the setup in this tab, so its end is shown. */
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

/** look asks where the setup stands. */
export async function loadState(): Promise<void> {
  const state = await request<State>('state').catch(() => undefined)
  if (state) applyState(state)
}

/** act carries a step of the setup out. */
export async function submit(action: Action): Promise<State> {
  const state = await request<State>('setup', action)
  applyState(state)
  return state
}

function applyState(state: State): void {
  if (state.step !== 'done') wizardOpen.value = true
  setupState.value = state
}

/** invite gets a one-time code for this page's device. */
export async function requestPairingCode(): Promise<string> {
  return (await request<{ pair: string }>('device', {})).pair
}

export interface Diagnostics {
  text: string
  gateway: { route: { kind: 'local' | 'remote'; reason: string } | null } | null
}

export const loadDiagnostics = (connect: boolean): Promise<Diagnostics> => (connect ? request<Diagnostics>('reconnect', {}) : request<Diagnostics>('diagnostics'))

/** watch tells the program when the page is seen again, which is when the way to the gateway may be another one. */
export function reportForeground(): void {
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState !== 'visible') return
    void request('foreground', {}).then(loadState, () => {})
  })
}
