import type { Device as DeviceInfo, User } from './frames.js'
import type { SocketConstructor } from './link.js'
import { MemoryStore, type Store } from './store.js'
import type { Surroundings } from './wake.js'

/** Where to connect and as whom. url, device.id and one of token, pair or a token in the store are needed. Times are in milliseconds. */
export interface Config {
  /** Address of the server: ws, wss, http or https. Without a path, /ws is meant. It must not hold a token. */
  url: string
  /** Token of the app or the device. When set it is always used, never the one in the store. */
  token?: string
  /**
   * A one-time pairing code. It is used when token is not set and the store has none, or when the server refuses the store's; the
   * token that the server gives for it goes into the store.
   */
  pair?: string
  /** This installation. Its id, 1 to 128 characters of A-Z a-z 0-9 . _ - : @, must stay the same for ever. */
  device: DeviceInfo
  /** Who owns the device. Default: the device id. */
  user?: User

  /** Ask for what was added while a reply streams, instead of whole texts. The events are the same. Default true. */
  delta?: boolean
  /** Ask for tool events. Default false. */
  tools?: boolean
  /** Ask for notice events, which tell of new devices of the user. Ask only where a person is shown them. Default false. */
  notices?: boolean

  /** Keeps the cursor, the outgoing messages and the device's own token. Default: a MemoryStore, which forgets. */
  store?: Store
  /** Default: that of the platform. Node 20 has none: give it that of a package such as `ws`. */
  WebSocket?: SocketConstructor
  /** For downloads. Default: that of the platform. */
  fetch?: typeof fetch
  /** What tells that the page or the network came back. Default: window and document where there are any; false: nothing. */
  surroundings?: Surroundings | false

  /** Between attempts to connect: a random time up to min·2ⁿ, at most max, n counting the attempts since a connection last held for stable. Default 500, 30000 and 10000. */
  backoff?: { min?: number; max?: number; stable?: number }
  /** When nothing was heard for so long, the server is pinged. Default 30000. */
  heartbeat?: number
  /** A connection whose ping is not answered for so long is dead. Default 15000; at most 5000 after the page or the network came back. */
  pongTimeout?: number
  /** Bounds connecting and, again, the wait for ready. Default 15000. */
  connectTimeout?: number
  /** A message that has no receipt after so long on a live connection is sent again. Default 30000. */
  receiptTimeout?: number
  /** An indicator goes off so long after the last sign of work. Default 60000. */
  typingLease?: number
  /** Failing to connect becomes an error of the status after so long. Default 10000. */
  patience?: number

  /** How much may wait for a slow loop, in bytes. Default 16 MiB. */
  queueBytes?: number
  /** The largest file taken in frames, in bytes; a larger one gives a file event with an error. Default 64 MiB. */
  maxFileBytes?: number
}

/** Settings is a Config with everything in it. */
export type Settings = Required<Omit<Config, 'token' | 'pair' | 'user' | 'surroundings' | 'backoff'>> &
  Pick<Config, 'token' | 'pair' | 'user' | 'surroundings'> & { backoff: Required<NonNullable<Config['backoff']>> }

/** settings checks a Config and fills it in. */
export function settings(config: Config): Settings {
  for (const [name, id] of [['device.id', config.device?.id ?? ''], ['user.id', config.user?.id || 'x']] as const) {
    if (!/^[\w.:@-]{1,128}$/.test(id)) throw new TypeError(name + ' must be 1 to 128 characters of A-Z a-z 0-9 . _ - : @')
  }
  const socket = config.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  if (!socket) throw new TypeError('this platform has no WebSocket: set Config.WebSocket, to that of the package ws for example')
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as unknown as Config
  return {
    delta: true, tools: false, notices: false, heartbeat: 30_000, pongTimeout: 15_000, connectTimeout: 15_000, receiptTimeout: 30_000, typingLease: 60_000,
    patience: 10_000, queueBytes: 16 << 20, maxFileBytes: 64 << 20, store: new MemoryStore(), fetch: (...args) => globalThis.fetch(...args),
    ...given, WebSocket: socket, url: address(config.url), backoff: { min: 500, max: 30_000, stable: 10_000, ...config.backoff },
  }
}

/** address brings the address into the form that is dialled. */
export function address(text: string): string {
  // By hand: not every platform lets the parts of a URL be read and set.
  const found = /^(ws|http)(s?):\/\/([^/?#@\s]+)(\/[^?#\s]*)?(\?[^#\s]*)?(#.*)?$/i.exec(text)
  if (!found || /[?&]token=/.test(text)) {
    // What may be a token is kept out of the error.
    throw new TypeError(`"${String(text).replace(/[?#].*|\/\/.*@/s, '…')}" is no address: write it like wss://agent.example.com/ws, without a token`)
  }
  const [, , secure, host, path = '/', query = ''] = found
  return `ws${secure!.toLowerCase()}://${host}${path === '/' ? '/ws' : path}${query}`
}

/** newID makes a message id. */
export function newID(): string {
  const bytes = new Uint8Array(16)
  // A page of plain http has getRandomValues but no randomUUID; React Native without a polyfill has neither. An id must be unique, it is no secret.
  if ((globalThis.crypto as Crypto | undefined)?.getRandomValues as unknown) crypto.getRandomValues(bytes)
  else bytes.forEach((_, i) => (bytes[i] = Math.random() * 256))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
