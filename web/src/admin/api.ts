import { readLocal, writeLocal } from '../storage/localStorage'
import { t } from '../i18n/i18n'

/**
 * Access is what the server allows this browser to do: use its session, log in with a one-time link
 * only, log in with the admin token or a passkey too, follow the token with a passkey, or nothing
 * before it switches to HTTPS.
 */
export interface Access {
  access: 'session' | 'link' | 'login' | 'passkey' | 'encrypt'
  /** The secret of this page, sent once: see savePageSecret. */
  page?: string
  plain: boolean
  /** How a login can start. */
  token?: boolean
  passkey?: boolean
}

/** The localStorage key of the page's secret. */
const PAGE_SECRET_KEY = 'hermes.admin'
let pageSecret = ''

/**
 * savePageSecret stores the secret that each request needs besides the cookie. An empty one deletes
 * it. A browser sends the cookie to every port of this host, but shows the secret only to pages of
 * this origin.
 */
export function savePageSecret(secret: string): void {
  pageSecret = secret // for a browser that stores nothing
  writeLocal(PAGE_SECRET_KEY, secret)
}

export interface Issue {
  code: string
  severity: 'error' | 'warning' | 'note'
  about?: string
  text?: string
  do?: string
  see?: string
}

export interface Report {
  well: boolean
  findings: Issue[]
  checked: string[]
}

export const rights = ['write', 'answer', 'call'] as const
export type Right = (typeof rights)[number]

export interface Device {
  id: string
  name: string
  platform?: string
  app?: string
  user: string
  user_name?: string
  /** Of an unbound device: the user whose messages wait for it. */
  was_user?: string
  token: string
  connected: boolean
  approved: boolean
  revoked: boolean
  home: boolean
  conversation?: string
  rights: Record<Right, boolean>
  /** When it can answer cards, if it can't yet. */
  answers_at?: string
  /** When its own token expires or expired. */
  expires_at?: string
  /** Its own token is being replaced. */
  rotating?: boolean
  waiting: number
  seen_at: string
}

export interface Gateway {
  ID: string
  Name: string
  Online: boolean
  Seen: boolean
  Since: string
  From: string
  Version: string
  Turns: number
  Waiting: number
  Wedges: number
}

export interface Status {
  version: string
  address: string
  public_url?: string
  data: string
  started: string
  agent: string
  agent_why: string
  agent_online: boolean
  agent_detail: string
  relay?: { Gateways: Gateway[] | null; Refusals: number }
  devices: number
  connected: number
  pending: number
  tls: { mode: string; not_after?: string; last_error?: string }
  health: { ready: boolean; findings: Issue[] }
}

export interface Pending {
  request_id: string
  user_id: string
  user_name: string
  age_minutes: number
}

export interface User {
  user_id: string
  user_name: string
  approved_at?: string
}

export interface Token {
  label: string
  kind: string
  source: string
  expires_at?: string
  last_used_at?: string
}

/** PairedDevice is a device that redeemed a pairing code recently. `code` is the code's name. */
export interface PairedDevice {
  code: string
  id: string
  name: string
  user: string
  at: string
}

export interface Overview {
  status: Status
  devices: Device[]
  home: { device: Device | null }
  pairing: { pending: Pending[]; approved: User[] }
  paired: PairedDevice[]
  tokens: Token[]
  totals: Record<string, number> | null
  problems: string[]
}

export interface NewPairingCode {
  name: string
  user?: string
  code: string
  link: string
  address: string
  fingerprint?: string
  expires_at: string
  local: boolean
  qr: { size: number; path: string }
}

export interface Delivery {
  number: number
  at: string
  device: string
  source: string
  sender?: string
  id?: string
  job?: string
  state: string
  sent_at?: string
  delivered_at?: string
  seen_at?: string
  expired_at?: string
}

export interface AuditEntry {
  number: number
  at: string
  actor: string
  origin?: string
  action: string
  subject?: string
  detail?: string
}

/** RequestError is a request that the server rejected, and the reason. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

const TIMEOUT = 90_000

/**
 * request sends a GET, or a POST if there is a body. It throws RequestError if the server rejects
 * it.
 */
async function request(path: string, body?: object): Promise<Response> {
  const headers: Record<string, string> = { 'X-Hermes-Mobile-Admin': readLocal(PAGE_SECRET_KEY) || pageSecret || '1' }
  if (body) headers['Content-Type'] = 'application/json'
  let response: Response
  try {
    response = await fetch('admin/api' + path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT) })
  } catch {
    throw new RequestError(0, 'unreachable', t('unreachable'))
  }
  if (response.ok) return response
  const answer = (await response.json().catch(() => ({}))) as { code?: string; message?: string }
  throw new RequestError(response.status, answer.code ?? '', answer.message ?? response.statusText)
}

/** requestJSON returns the server's answer. */
export async function requestJSON<T>(path: string, body?: object): Promise<T> {
  return (await (await request(path, body)).json().catch(() => ({}))) as T
}

/** download saves the server's answer as a file. It saves nothing if the answer breaks off. */
export async function download(path: string, name: string): Promise<void> {
  const response = await request(path)
  const blob = await response.blob().catch(() => {
    throw new RequestError(0, 'unreachable', t('unreachable'))
  })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), TIMEOUT)
}
