import { parsePairingLink } from '@hermes-mobile/sdk'

/** What a person brings to get in. */
export interface Invitation {
  pair?: string
  token?: string
  /** Address of the WebSocket. */
  url: string
}

/** folder is the address that the page is served below, ending in a slash. */
export function pageBase(): string {
  return new URL('.', location.href).href
}

/** addressHere is the WebSocket of the server that served this page. */
export function socketAddress(path = document.querySelector<HTMLMetaElement>('meta[name=hermes-path]')?.content || '/ws'): string {
  return pageBase().replace(/^http/, 'ws').replace(/\/$/, '') + path
}

/** takeFragment reads the pairing link that opened this page, and takes its code out of the address bar and the history at once. */
export function takePairingLink(): Invitation | undefined {
  if (!location.hash) return undefined
  const link = parsePairingLink(location.href.replace(location.search, ''))
  history.replaceState(null, '', location.pathname + location.search)
  return link && { pair: link.pair, url: link.url }
}

/** takeShow reads what a notification opened the page for, and takes it out of the address bar. */
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

/** linkHere has a file's link fetched from the address that the page is at: it is the same server, whatever name it calls itself. */
export function mediaLink(url: string): string {
  const at = url.lastIndexOf('/media/')
  return at < 0 ? '' : pageBase() + url.slice(at + 1).replace(/[?#].*/s, '')
}

/** elsewhere gives the page of another server, which has to be opened for it: this page speaks to its own server only. */
export function otherServerPage(url: string): string {
  const there = new URL(url.replace(/^ws/, 'http'))
  return there.host === location.host ? '' : there.origin + '/'
}

/** readInvitation understands a pairing link, or a code alone. */
export function parseInvitation(text: string): Invitation | undefined {
  const link = parsePairingLink(text)
  if (link) return { pair: link.pair, url: link.url }
  const code = text.trim().toUpperCase()
  return /^[A-Z0-9]{4}-?[A-Z0-9]{4}$/.test(code) ? { pair: code, url: socketAddress() } : undefined
}

/** readAddress brings what a person types as an address into that of a WebSocket; undefined: it is none. */
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
