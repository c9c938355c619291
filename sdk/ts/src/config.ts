import { MAX_ID, type Device as DeviceInfo, type User } from './frames.js'
import type { SocketConstructor } from './link.js'
import { MemoryStore, type Store } from './store.js'
import type { Surroundings } from './wake.js'

/** Where to connect and as whom. It needs url, device.id, and one of token, pair or a token in the store. Times are in milliseconds. */
export interface Config {
  /** Address of the server: ws, wss, http or https. The default path is /ws. It must not contain a token. */
  url: string
  /** Token of the app or the device. It takes precedence over the one in the store. */
  token?: string
  /**
   * A pairing code, which works once. The device uses it when there is no token here and in the store, or when the server rejects the
   * token of the store. The token that the server gives in return goes into the store.
   */
  pair?: string
  /** This installation. Its id, 1 to 128 characters of A-Z a-z 0-9 . _ - : @, must never change. */
  device: DeviceInfo
  /** The owner of the device. Default: a user with the id of the device. */
  user?: User

  /** Requests additions while a reply streams, instead of whole texts. The events are the same. Default true. */
  delta?: boolean
  /** Requests tool events. Default false. */
  tools?: boolean
  /** Requests notice events, which report new devices of the user. Set it only where a person sees them. Default false. */
  notices?: boolean

  /** Holds the cursor, the outgoing messages and the device's own token. Default: a MemoryStore, which forgets them. */
  store?: Store
  /** Default: that of the platform. Node 20 has none: pass that of a package such as `ws`. */
  WebSocket?: SocketConstructor
  /** Fetches downloads. Default: that of the platform. */
  fetch?: typeof fetch
  /** Signals that the page or the network came back. Default: window and document where they exist; false: none. */
  surroundings?: Surroundings | false

  /** The wait between attempts: a random time between half of d and d, where d is min·2ⁿ and at most max. n counts the attempts since a connection last stayed up for stable. Default 500, 30000 and 10000. */
  backoff?: { min?: number; max?: number; stable?: number }
  /** How long the server may be quiet before the device pings it. Default 30000. */
  heartbeat?: number
  /** How long the device waits for the answer to a ping before it reconnects. Default 15000; at most 5000 after the page or the network came back. */
  pongTimeout?: number
  /** Limits the time to connect, and again the time to ready. Default 15000. */
  connectTimeout?: number
  /** How long the device waits for the ack of a message before it sends the message again. Default 30000. */
  ackTimeout?: number
  /** How long the typing indicator stays on after the last sign of work. Default 60000. */
  typingTimeout?: number
  /** How long connecting may fail before the status has an error. Default 10000. */
  patience?: number

  /** Limits the events that wait for a slow loop, in bytes. Default 16 MiB. */
  queueBytes?: number
  /** The largest file to accept in frames, in bytes. A larger one gives a file event with an error. Default 64 MiB. */
  maxFileBytes?: number
}

/** Settings is a Config with all defaults. */
export type Settings = Required<Omit<Config, 'token' | 'pair' | 'user' | 'surroundings' | 'backoff'>> &
  Pick<Config, 'token' | 'pair' | 'user' | 'surroundings'> & { backoff: Required<NonNullable<Config['backoff']>> }

/** settings checks a Config and fills in the defaults. */
export function settings(config: Config): Settings {
  for (const [name, id] of [['device.id', config.device?.id ?? ''], ['user.id', config.user?.id || 'x']] as const) {
    if (!/^[\w.:@-]+$/.test(id) || id.length > MAX_ID) throw new TypeError(`${name} must be 1 to ${MAX_ID} characters of A-Z a-z 0-9 . _ - : @`)
  }
  const socket = config.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  if (!socket) throw new TypeError('this platform has no WebSocket: set Config.WebSocket, for example to that of the package ws')
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as unknown as Config
  return {
    delta: true, tools: false, notices: false, heartbeat: 30_000, pongTimeout: 15_000, connectTimeout: 15_000, ackTimeout: 30_000, typingTimeout: 60_000,
    patience: 10_000, queueBytes: 16 << 20, maxFileBytes: 64 << 20, store: new MemoryStore(), fetch: (...args) => globalThis.fetch(...args),
    ...given, WebSocket: socket, url: address(config.url), backoff: { min: 500, max: 30_000, stable: 10_000, ...config.backoff },
  }
}

/** address returns the address to dial. */
export function address(text: string): string {
  // Not every platform can read and set the parts of a URL.
  const found = /^(ws|http)(s?):\/\/([^/?#@\s]+)(\/[^?#\s]*)?(\?[^#\s]*)?(#.*)?$/i.exec(text)
  if (!found || /[?&]token=/.test(text)) {
    // Keep possible tokens out of the error.
    throw new TypeError(`"${String(text).replace(/[?#].*|\/\/.*@/s, '…')}" is not an address: write it like wss://agent.example.com/ws, without a token`)
  }
  const [, , secure, host, path = '/', query = ''] = found
  return `ws${secure!.toLowerCase()}://${host}${path === '/' ? '/ws' : path}${query}`
}

/** newID returns a new message id. */
export function newID(): string {
  const bytes = new Uint8Array(16)
  // A page over plain http has getRandomValues but no randomUUID; React Native without a polyfill has neither. An id must be unique, but is not a secret.
  if ((globalThis.crypto as Crypto | undefined)?.getRandomValues as unknown) crypto.getRandomValues(bytes)
  else bytes.forEach((_, i) => (bytes[i] = Math.random() * 256))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
