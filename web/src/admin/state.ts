import { computed, effect, signal, untracked } from '@preact/signals'
import { complain } from '../view/notice'
import { ask, keepPage, Refusal, type Access, type Delivery, type Finding, type Overview, type Report } from './api'

/** How often the page looks anew while it is on the screen. */
const EVERY = 4000

export const places = ['overview', 'devices', 'people', 'deliveries', 'doctor', 'tokens'] as const
export type Place = (typeof places)[number]

const here = () => places.find((name) => '#/' + name === location.hash) ?? 'overview'

export const place = signal<Place>(here())
/** undefined: the server was not asked yet. */
export const access = signal<Access | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
export const deliveries = signal<Delivery[] | undefined>(undefined)
export const filter = signal({ device: '', state: '' })
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
    ])
    overview.value = all
    if (list && wanted === filter.peek()) deliveries.value = list
    stale.value = ''
  } catch (error) {
    lost(error)
  }
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
  overview.value = deliveries.value = report.value = undefined
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

/** login gives what is wrong, nothing where it worked. */
export async function login(token: string): Promise<string> {
  try {
    enter(await ask<Access>('/login', { token }))
    void refresh()
    return ''
  } catch (error) {
    return error instanceof Refusal && error.code ? error.code : 'unreachable'
  }
}

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
    void filter.value
    void place.value
    untracked(() => void refresh())
  })
}
