import { address } from './config.js'

/** What a pairing link says (doc/protocol.md §8). */
export interface PairingLink {
  /** Address of the WebSocket, for Config.url. */
  url: string
  /** The one-time code, for Config.pair. */
  pair: string
  /** SHA-256 of the server's certificate, where the link names one. A browser cannot check it; other platforms can. */
  fingerprint?: string
}

/** parsePairingLink reads `https://host[:port]/#pair=CODE[&path=/x][&fingerprint=…]`. undefined: the text is no such link. */
export function parsePairingLink(text: string): PairingLink | undefined {
  const [base = '', fragment = ''] = text.trim().split('#')
  const word = (name: string) => {
    const found = new RegExp(`(?:^|&)${name}=([^&]*)`).exec(fragment)
    return found ? decodeURIComponent(found[1]!.replace(/\+/g, ' ')) : ''
  }
  try {
    const pair = word('pair')
    const path = word('path') || '/ws'
    if (!pair || path[0] !== '/' || !/^https?:\/\/[^/?][^?]*$/i.test(base)) return undefined
    const fingerprint = word('fingerprint')
    return { url: address(base.replace(/\/$/, '') + path), pair, ...(fingerprint && { fingerprint }) }
  } catch {
    return undefined // no address, or a damaged escape
  }
}
