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
  const found = /^http(s?):\/\/([^/?#@\s\\]+)(\/[^?#\s\\]*)?#(\S+)$/i.exec(text.trim())
  if (!found) return undefined
  const [, secure, host, prefix = '', fragment] = found
  const words = new Map<string, string>()
  try {
    for (const word of fragment!.split('&')) {
      const [name = '', ...value] = word.split('=')
      words.set(name, decodeURIComponent(value.join('=').replace(/\+/g, ' ')))
    }
  } catch {
    return undefined // a damaged escape
  }
  const pair = words.get('pair')
  const path = words.get('path') || '/ws'
  if (!pair || !/^\/[^?#\s\\]*$/.test(path)) return undefined
  const link: PairingLink = { url: `ws${secure!.toLowerCase()}://${host}${prefix.replace(/\/$/, '')}${path}`, pair }
  const fingerprint = words.get('fingerprint')
  if (fingerprint) link.fingerprint = fingerprint
  return link
}
