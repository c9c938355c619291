import { computed, effect, signal, untracked } from '@preact/signals'
import { complain } from '../view/notice'
import { ask, keepPage, Refusal, type Access, type AuditEntry, type Delivery, type Finding, type Overview, type Report } from './api'
import { answers, stopped, type GetOptions } from './webauthn'

/** How often the page looks anew while it is on the screen. */
const EVERY = 4000

export const places = ['overview', 'devices', 'people', 'deliveries', 'doctor', 'tokens', 'audit'] as const
export type Place = (typeof places)[number]

const here = () => places.find((name) => '#/' + name === location.hash) ?? 'overview'

export const place = signal<Place>(here())
/** undefined: the server was not asked yet. */
export const access = signal<Access | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
export const deliveries = signal<Delivery[] | undefined>(undefined)
export const filter = signal({ device: '', state: '' })
/** The newest entries of the audit log that fit auditFilter; more: there are older ones. */
export const audit = signal<{ entries: AuditEntry[]; more: boolean } | undefined>(undefined)
export const auditFilter = signal({ kind: '', device: '' })
export const report = signal<Report | undefined>(undefined)
export const examining = signal(false)
/** trouble is how much is wrong: what the server sees by itself, and what the doctor found when he was asked last. */
export const trouble = computed(() => {
  const all: Finding[] = [...(overview.value?.status.health.findings ?? []), ...(report.value?.findings ?? [])]
  return new Set(all.filter(({ severity }) => severity !== 'note').map(({ code, about }) => `${code} ${about ?? ''}`)).size
})
/** Why what is shown may be old; empty where it is not. */
export const stale = signal('')

/** The link that was opened was of no use: it had been used, or was too old. */
export const spent = signal(false)

export const entered = () => access.value?.access === 'session'

let running: Promise<void> | undefined
let again = false

/** refresh looks anew, and once more where it is asked for meanwhile: what was changed since is then seen. */
export function refresh(): Promise<void> {
  if (running) {
    again = true
    return running
  }
  running = (async () => {
    do {
      again = false
      await look()
    } while (again)
  })().finally(() => (running = undefined))
  return running
}

async function look(): Promise<void> {
  try {
    if (!entered()) enter(await ask<Access>('/session'))
    if (!entered()) return
    spent.value = false
    const wanted = filter.peek()
    const [all, list] = await Promise.all([
      ask<Overview>('/overview'),
      place.peek() === 'deliveries' ? ask<Delivery[]>('/deliveries?' + new URLSearchParams({ ...wanted, limit: '200' })) : undefined,
      place.peek() === 'audit' ? newerAudit() : undefined,
    ])
    overview.value = all
    if (list && wanted === filter.peek()) deliveries.value = list
    stale.value = ''
  } catch (error) {
    lost(error)
  }
}

const AUDIT_PAGE = 100

async function auditPage(before: number): Promise<AuditEntry[]> {
  const { kind, device } = auditFilter.peek()
  return ask<AuditEntry[]>('/audit?' + new URLSearchParams({ before: String(before), action: kind && kind + '.*', device, limit: String(AUDIT_PAGE) }))
}

/** newerAudit puts new entries before those that are shown. Where they do not meet, only the new ones stay. */
async function newerAudit(): Promise<void> {
  const wanted = auditFilter.peek()
  const page = await auditPage(0)
  if (wanted !== auditFilter.peek()) return
  const shown = audit.peek()
  const last = page.at(-1)?.number ?? 0
  if (shown && shown.entries.some(({ number }) => number === last)) audit.value = { entries: [...page, ...shown.entries.filter(({ number }) => number < last)], more: shown.more }
  else audit.value = { entries: page, more: page.length === AUDIT_PAGE }
}

/** olderAudit adds a page below those entries that are shown. */
export async function olderAudit(): Promise<void> {
  const wanted = auditFilter.peek()
  const page = await auditPage(audit.peek()?.entries.at(-1)?.number ?? 0)
  const shown = audit.peek()
  if (!shown || wanted !== auditFilter.peek()) return
  const last = shown.entries.at(-1)?.number ?? Infinity
  audit.value = { entries: [...shown.entries, ...page.filter(({ number }) => number < last)], more: page.length === AUDIT_PAGE }
}

/** enter notes how far the server lets this browser get. */
function enter(now: Access): void {
  if (now.page) keepPage(now.page)
  access.value = now
}

/** lost notes that the server answers no more, or that the login has ended. */
function lost(error: unknown): void {
  if (error instanceof Refusal && error.status === 401) forget()
  else stale.value = (error as Error).message
}

/** forget leaves nothing of the server on the screen, and asks how to get in again. */
function forget(): void {
  access.value = undefined
  overview.value = deliveries.value = audit.value = report.value = undefined
  stale.value = ''
  void refresh()
}

/** act has the server do something, and shows what became of it. It gives undefined where it was refused. */
export async function act<T = unknown>(path: string, body: object = {}): Promise<{ answer: T } | undefined> {
  try {
    const answer = await ask<T>(path, body)
    void refresh()
    return { answer }
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) forget()
    else complain(error)
    void refresh()
    return undefined
  }
}

/** enters runs a login, and gives what is wrong, nothing where it worked. */
async function enters(run: () => Promise<Access>): Promise<string> {
  try {
    enter(await run())
    void refresh()
    return ''
  } catch (error) {
    if (stopped(error)) return 'stopped'
    return error instanceof Refusal && error.code ? error.code : 'unreachable'
  }
}

/** login logs in with the admin token, and with a passkey after it where the server asks for one. */
export function login(token: string): Promise<string> {
  return enters(async () => {
    const next = await ask<Access & { ask?: GetOptions }>('/login', { token })
    return next.access === 'passkey' ? answers<Access>(next.ask) : next
  })
}

export const passkeyLogin = (): Promise<string> => enters(() => answers<Access>())

export async function logout(): Promise<void> {
  await ask('/logout', {}).catch(complain)
  keepPage('')
  forget()
}

/** examine runs the doctor anew. */
export async function examine(): Promise<void> {
  if (examining.peek()) return
  examining.value = true
  try {
    report.value = await ask<Report>('/doctor')
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) forget()
    else complain(error)
  } finally {
    examining.value = false
  }
}

/** begin keeps what is shown fresh while somebody sees it. */
export function begin(): void {
  if (new URLSearchParams(location.search).get('link') === 'spent') {
    spent.value = true
    history.replaceState(null, '', location.pathname + location.hash)
  }
  window.addEventListener('hashchange', () => (place.value = here()))
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && void refresh())
  setInterval(() => document.visibilityState === 'visible' && (access.peek() === undefined || entered()) && void refresh(), EVERY)
  effect(() => {
    void auditFilter.value
    audit.value = undefined
  })
  effect(() => {
    void filter.value
    void place.value
    void auditFilter.value
    untracked(() => void refresh())
  })
}
