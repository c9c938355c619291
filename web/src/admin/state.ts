import { computed, effect, signal, untracked } from '@preact/signals'
import { showError } from '../view/toast'
import { requestJSON, savePageSecret, RequestError, type Access, type AuditEntry, type Delivery, type Issue, type Overview, type Report } from './api'
import { authenticate, wasAborted, type GetOptions } from './webauthn'

/** The interval between two refreshes while the page is visible, in milliseconds. */
const REFRESH_INTERVAL = 4000

export const sections = ['overview', 'devices', 'people', 'deliveries', 'doctor', 'tokens', 'audit'] as const
export type Section = (typeof sections)[number]

const sectionFromHash = () => sections.find((name) => '#/' + name === location.hash) ?? 'overview'

export const section = signal<Section>(sectionFromHash())
/** undefined: the server hasn't answered yet. */
export const access = signal<Access | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
export const deliveries = signal<Delivery[] | undefined>(undefined)
export const filter = signal({ device: '', state: '' })
/** The newest entries of the audit log that match auditFilter. more: there are older ones. */
export const audit = signal<{ entries: AuditEntry[]; more: boolean } | undefined>(undefined)
export const auditFilter = signal({ kind: '', device: '' })
export const report = signal<Report | undefined>(undefined)
export const doctorRunning = signal(false)
/**
 * issueCount is the number of issues that the server reports or the last doctor run found, without
 * notes.
 */
export const issueCount = computed(() => {
  const all: Issue[] = [...(overview.value?.status.health.findings ?? []), ...(report.value?.findings ?? [])]
  return new Set(all.filter(({ severity }) => severity !== 'note').map(({ code, about }) => `${code} ${about ?? ''}`)).size
})
/** Why the shown data may be out of date. Empty: it is up to date. */
export const stale = signal('')

/** The link that opened this page was already used or had expired. */
export const linkSpent = signal(false)

export const loggedIn = () => access.value?.access === 'session'

let running: Promise<void> | undefined
let again = false

/**
 * refresh reloads the shown data. A call during a refresh starts another one, which sees later
 * changes.
 */
export function refresh(): Promise<void> {
  if (running) {
    again = true
    return running
  }
  running = (async () => {
    do {
      again = false
      await load()
    } while (again)
  })().finally(() => (running = undefined))
  return running
}

async function load(): Promise<void> {
  try {
    if (!loggedIn()) setAccess(await requestJSON<Access>('/session'))
    if (!loggedIn()) return
    linkSpent.value = false
    const wanted = filter.peek()
    const [all, list] = await Promise.all([
      requestJSON<Overview>('/overview'),
      section.peek() === 'deliveries' ? requestJSON<Delivery[]>('/deliveries?' + new URLSearchParams({ ...wanted, limit: '200' })) : undefined,
      section.peek() === 'audit' ? loadNewAudit() : undefined,
    ])
    overview.value = all
    if (list && wanted === filter.peek()) deliveries.value = list
    stale.value = ''
  } catch (error) {
    onError(error)
  }
}

const AUDIT_PAGE = 100

async function auditPage(before: number): Promise<AuditEntry[]> {
  const { kind, device } = auditFilter.peek()
  return requestJSON<AuditEntry[]>('/audit?' + new URLSearchParams({ before: String(before), action: kind && kind + '.*', device, limit: String(AUDIT_PAGE) }))
}

/**
 * loadNewAudit puts new entries before the shown ones. If there is a gap between them, only the new
 * ones stay.
 */
async function loadNewAudit(): Promise<void> {
  const wanted = auditFilter.peek()
  const page = await auditPage(0)
  if (wanted !== auditFilter.peek()) return
  const shown = audit.peek()
  const last = page.at(-1)?.number ?? 0
  if (shown?.entries.some(({ number }) => number === last)) audit.value = { entries: [...page, ...shown.entries.filter(({ number }) => number < last)], more: shown.more }
  else audit.value = { entries: page, more: page.length === AUDIT_PAGE }
}

/** loadOlderAudit adds a page of entries below the shown ones. */
export async function loadOlderAudit(): Promise<void> {
  const wanted = auditFilter.peek()
  const page = await auditPage(audit.peek()?.entries.at(-1)?.number ?? 0)
  const shown = audit.peek()
  if (!shown || wanted !== auditFilter.peek()) return
  const last = shown.entries.at(-1)?.number ?? Infinity
  audit.value = { entries: [...shown.entries, ...page.filter(({ number }) => number < last)], more: page.length === AUDIT_PAGE }
}

/** setAccess stores what the server allows this browser to do. */
function setAccess(now: Access): void {
  if (now.page) savePageSecret(now.page)
  access.value = now
}

/** onError notes that the server doesn't answer or that the login has ended. */
function onError(error: unknown): void {
  if (error instanceof RequestError && error.status === 401) reset()
  else stale.value = (error as Error).message
}

/** reset removes all data of the server from the page and asks how to log in again. */
function reset(): void {
  access.value = undefined
  overview.value = deliveries.value = audit.value = report.value = undefined
  stale.value = ''
  void refresh()
}

/**
 * submit sends a change to the server and shows its result. It returns undefined if the server
 * rejected it.
 */
export async function submit<T = unknown>(path: string, body: object = {}): Promise<{ answer: T } | undefined> {
  try {
    const answer = await requestJSON<T>(path, body)
    void refresh()
    return { answer }
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) reset()
    else showError(error)
    void refresh()
    return undefined
  }
}

/** attemptLogin runs a login. It returns the reason if the login failed, else an empty string. */
async function attemptLogin(run: () => Promise<Access>): Promise<string> {
  try {
    setAccess(await run())
    void refresh()
    return ''
  } catch (error) {
    if (wasAborted(error)) return 'stopped'
    return error instanceof RequestError && error.code ? error.code : 'unreachable'
  }
}

/** login logs in with the admin token, followed by a passkey if the server asks for one. */
export function login(token: string): Promise<string> {
  return attemptLogin(async () => {
    const next = await requestJSON<Access & { ask?: GetOptions }>('/login', { token })
    return next.access === 'passkey' ? authenticate<Access>(next.ask) : next
  })
}

export const passkeyLogin = (): Promise<string> => attemptLogin(() => authenticate<Access>())

export async function logout(): Promise<void> {
  await requestJSON('/logout', {}).catch(showError)
  savePageSecret('')
  reset()
}

/** runDoctor runs the doctor again. */
export async function runDoctor(): Promise<void> {
  if (doctorRunning.peek()) return
  doctorRunning.value = true
  try {
    report.value = await requestJSON<Report>('/doctor')
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) reset()
    else showError(error)
  } finally {
    doctorRunning.value = false
  }
}

/** start keeps the shown data up to date while the page is visible. */
export function start(): void {
  if (new URLSearchParams(location.search).get('link') === 'spent') {
    linkSpent.value = true
    history.replaceState(null, '', location.pathname + location.hash)
  }
  window.addEventListener('hashchange', () => (section.value = sectionFromHash()))
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && void refresh())
  setInterval(() => document.visibilityState === 'visible' && (access.peek() === undefined || loggedIn()) && void refresh(), REFRESH_INTERVAL)
  effect(() => {
    void auditFilter.value
    audit.value = undefined
  })
  effect(() => {
    void filter.value
    void section.value
    void auditFilter.value
    untracked(() => void refresh())
  })
}
