import { parsePairingLink } from '@hermes-mobile/sdk'

/** Invitation is a pairing code or token with the server it belongs to. */
export interface Invitation {
  pair?: string
  token?: string
  /** The WebSocket URL. */
  url: string
}

/** pageBase returns the URL of the folder that the page is served from, with a slash at the end. */
export function pageBase(): string {
  return new URL('.', location.href).href
}

/** socketAddress returns the WebSocket URL of the server that served this page. */
export function socketAddress(path = document.querySelector<HTMLMetaElement>('meta[name=hermes-path]')?.content || '/ws'): string {
  return pageBase().replace(/^http/, 'ws').replace(/\/$/, '') + path
}

/**
 * takePairingLink reads the pairing link that opened this page and removes its code from the
 * address bar and the browser's history.
 */
export function takePairingLink(): Invitation | undefined {
  if (!location.hash) return undefined
  const link = parsePairingLink(location.href.replace(location.search, ''))
  history.replaceState(null, '', location.pathname + location.search)
  return link && { pair: link.pair, url: link.url }
}

/**
 * takeNotificationTarget reads the id that a notification opened the page for and removes it from
 * the address bar.
 */
export function takeNotificationTarget(): string {
  const id = /^#show=(.+)$/.exec(location.hash)?.[1]
  if (!id) return ''
  history.replaceState(null, '', location.pathname + location.search)
  try {
    return decodeURIComponent(id)
  } catch {
    return ''
  }
}

/**
 * mediaLink rewrites a file's link to the origin of this page. It is the same server, whatever name
 * the server uses for itself.
 */
export function mediaLink(url: string): string {
  const at = url.lastIndexOf('/media/')
  return at < 0 ? '' : pageBase() + url.slice(at + 1).replace(/[?#].*/s, '')
}

/**
 * otherServerPage returns the page of another server, or an empty string for this server. A page
 * connects to its own server only.
 */
export function otherServerPage(url: string): string {
  const there = new URL(url.replace(/^ws/, 'http'))
  return there.host === location.host ? '' : there.origin + '/'
}

/** parseInvitation parses a pairing link or a bare code. */
export function parseInvitation(text: string): Invitation | undefined {
  const link = parsePairingLink(text)
  if (link) return { pair: link.pair, url: link.url }
  const code = text.trim().toUpperCase()
  return /^[A-Z0-9]{4}-?[A-Z0-9]{4}$/.test(code) ? { pair: code, url: socketAddress() } : undefined
}

/**
 * parseAddress converts the address that a user typed to a WebSocket URL. It returns undefined if
 * it isn't an address.
 */
export function parseAddress(text: string): string | undefined {
  const here = new URL(socketAddress())
  const typed = text.trim()
  try {
    const url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(typed) ? typed : `${here.protocol}//${typed}`)
    if (!/^(wss?|https?):$/.test(url.protocol) || url.username || url.password) return undefined
    return `${/^(wss|https):$/.test(url.protocol) ? 'wss' : 'ws'}://${url.host}${url.pathname === '/' ? here.pathname : url.pathname}`
  } catch {
    return undefined
  }
}
