import { address } from './config.js'

/** The content of a pairing link (doc/protocol.md §8). */
export interface PairingLink {
  /** The address of the WebSocket, for Config.url. */
  url: string
  /** The pairing code, for Config.pair. */
  pair: string
  /** The SHA-256 of the server's certificate, where the link has it. A browser cannot check it; other platforms can. */
  fingerprint?: string
}

/** parsePairingLink parses `https://host[:port]/#pair=CODE[&path=/x][&fingerprint=…]`. It returns undefined for any other text. */
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
    return undefined // not an address, or a broken escape
  }
}
