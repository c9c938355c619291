import type { Acks } from './acks.js'
import { decode, encode } from './codec.js'
import type { Settings } from './config.js'
import { frameError, LinkLostError, NoAccessError, ReplacedError } from './errors.js'
import { CLOSE_NO_ACCESS, CLOSE_REPLACED, CLOSE_TOO_BIG, type Error as ErrorFrame, type Hello, type Ready } from './frames.js'
import { FROZEN, Link } from './link.js'
import { seconds, type Outbox } from './outgoing.js'
import { fillReady } from './receive.js'
import type { Status } from './status.js'

/** What the connector serves: the device. */
export interface Host {
  readonly current: Readonly<Status>
  readonly acks: Acks
  readonly outbox: Outbox
  change(changes: Partial<Status>): void
  hello(): Hello
  online(link: Link, ready: Ready): void
  /** One text message after ready; it returns an error frame that belongs to nothing. */
  take(link: Link, text: string): ErrorFrame | undefined
  offline(): void
  /** Whether a pairing code is worth a try after this refusal. */
  pairInstead(refused: NoAccessError): boolean
}

/** How one attempt, with the connection it may have made, came to its end. */
interface Attempt {
  error: Error
  /** The server asked to wait so long. */
  after: number
  /** How long it was online. */
  online: number
}

/** The loop has room again, and fetches what was left to the server. */
export const catchUp = new LinkLostError()

/** An attempt that is older when the page or the network comes back is given up for a new one. */
const STALE = 5_000

/** Connector connects again and again until close, or until it is pointless and nobody asks for it. */
export class Connector {
  /** The connection that is or becomes the live one. */
  link: Link | undefined
  private closed = false
  private suspended = false
  private trouble = Date.now() // since when there is no connection, as far as somebody was awake to want one
  private nudge: (() => void) | undefined // ends the sleep

  constructor(
    private readonly settings: Settings,
    private readonly host: Host,
  ) {}

  /** run ends after close. */
  async run(): Promise<void> {
    const { host } = this
    const { stable } = this.settings.backoff
    for (let attempt = 0; !this.closed; ) {
      if (this.suspended) {
        host.change({ state: 'waiting', until: 0, error: undefined })
        await this.sleep(Infinity)
        attempt = 0
        continue
      }
      host.change({ state: 'connecting', until: 0 })
      const { error, after, online } = await this.connect()
      if (this.closed) return
      if (online >= stable) attempt = 0
      if (error === catchUp || this.suspended) continue
      const refused = error instanceof NoAccessError
      if (refused && host.pairInstead(error)) continue
      if (refused || error instanceof ReplacedError) {
        host.change({ state: refused ? 'noAccess' : 'replaced', error })
        await this.sleep(Infinity)
        attempt = 0
        continue
      }
      const wait = Math.max(this.delay(attempt++), after)
      const now = Date.now()
      host.change({ state: 'waiting', until: now + wait, error: now - this.trouble >= this.settings.patience ? error : undefined })
      if (await this.sleep(wait)) attempt = 0
    }
  }

  /** delay is the random wait before attempt n, from 0. */
  delay(n: number): number {
    const { min, max } = this.settings.backoff
    return Math.random() * Math.min(max, min * 2 ** n)
  }

  /** reconnect tries at once, whatever ended the last connection; a live one is probed. */
  reconnect(): void {
    const { state } = this.host.current
    this.suspended = false
    this.trouble = Date.now()
    if (state === 'online') this.link?.probe()
    else if (state === 'connecting') {
      if (this.link && Date.now() - this.link.began > STALE) this.link.end()
    } else if (state !== 'closed') {
      this.host.change({ state: 'connecting', until: 0, error: undefined }) // at once, so that nobody sees the old end
      this.nudge?.()
    }
  }

  /** wake is reconnect for a sign that the page or the network is back, which changes no refusal. */
  wake(): void {
    if (this.wanted()) this.reconnect()
  }

  /** doubt looks whether a live connection still lives. */
  doubt(): void {
    if (this.host.current.state === 'online') this.link?.probe()
  }

  /** suspend ends the connection, until reconnect or wake. */
  suspend(): void {
    if (!this.wanted()) return
    this.suspended = true
    this.leave()
  }

  close(): void {
    this.closed = true
    this.leave()
  }

  private leave(): void {
    this.host.acks.flush()
    this.link?.end()
    this.nudge?.()
  }

  private wanted(): boolean {
    return !['noAccess', 'replaced', 'closed'].includes(this.host.current.state)
  }

  /** sleep waits; true: it was ended early. */
  private sleep(ms: number): Promise<boolean> {
    const began = Date.now()
    return new Promise((resolve) => {
      const end = (early: boolean) => {
        clearTimeout(timer)
        this.nudge = undefined
        if (!early && Date.now() - began > ms + FROZEN) this.trouble = Date.now()
        resolve(early)
      }
      const timer = ms < Infinity ? setTimeout(() => end(false), ms) : undefined
      this.nudge = () => end(true)
    })
  }

  /** connect makes one connection and serves it to its end. */
  private async connect(): Promise<Attempt> {
    const { settings, host } = this
    let said: ErrorFrame | undefined
    let since = 0
    const received = (text: string) => {
      if (since) {
        said = host.take(link, text) ?? said
        return
      }
      const f = decodeOrNothing(text)
      if (f?.t === 'error') said = f
      if (f?.t !== 'ready') return
      since = Date.now()
      link.ready()
      host.online(link, fillReady(f))
    }
    let link: Link
    try {
      link = new Link(settings.WebSocket, settings.url, settings, () => link.send(encode(host.hello())), received)
    } catch (error) {
      // The platform refuses the address itself, as a page of https does with ws.
      return { error: new NoAccessError((error as Error).message), after: 0, online: 0 }
    }
    this.link = link
    const { code, error } = await link.ended
    this.link = undefined
    const online = since ? Date.now() - since : 0
    if (since) {
      this.trouble = Date.now()
      host.offline()
    }
    const after = said ? seconds(said.retry_after) : 0
    // Before ready the words say it too, where the close frame was lost.
    if (code === CLOSE_NO_ACCESS || (code > 0 && !since && (said?.code === 'auth_failed' || said?.code === 'forbidden'))) {
      return { error: noAccess(said, error), after, online }
    }
    if (code === CLOSE_REPLACED) return { error: new ReplacedError(), after, online }
    if (code === CLOSE_TOO_BIG && since) host.outbox.tooBig()
    const status = /^Unexpected server response: (40[0134])/.exec(error.message)?.[1] // the words of ws; a browser says nothing
    if (status) {
      const refused = `the server answered HTTP ${status}: check the address, and whether this origin may connect`
      return { error: new NoAccessError(refused, '', Number(status)), after, online }
    }
    return { error: said && !since ? frameError(said) : error, after, online }
  }
}

function decodeOrNothing(text: string): ReturnType<typeof decode> | undefined {
  try {
    return decode(text)
  } catch {
    return undefined
  }
}

/** noAccess makes the reason out of the last error frame, or of the close frame where there was none. */
function noAccess(said: ErrorFrame | undefined, error: Error): NoAccessError {
  return said
    ? new NoAccessError(said.message, said.code)
    : new NoAccessError(error.message || "the server refuses this device: check the token, or ask the agent's owner")
}
