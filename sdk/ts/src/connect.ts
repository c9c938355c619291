import type { Acks } from './acks.js'
import { decode, encode } from './codec.js'
import type { Settings } from './config.js'
import { frameError, LinkLostError, NoAccessError, ReplacedError } from './errors.js'
import { CLOSE_NO_ACCESS, CLOSE_REPLACED, CLOSE_TOO_BIG, type Error as ErrorFrame, type Hello, type Ready } from './frames.js'
import { FROZEN, Link } from './link.js'
import { seconds, type Outbox } from './outgoing.js'
import { fillReady } from './receive.js'
import type { Status } from './status.js'

/** The parts of the device that the connector uses. */
export interface Host {
  readonly current: Readonly<Status>
  readonly acks: Acks
  readonly outbox: Outbox
  change(changes: Partial<Status>): void
  hello(): Hello
  online(link: Link, ready: Ready): void
  /** Handles one text message after ready. It returns an error frame without a ref. */
  take(link: Link, text: string): ErrorFrame | undefined
  offline(): void
  /** Reports whether the pairing code is worth a try after this rejection. */
  pairInstead(refused: NoAccessError): boolean
}

/** How one attempt ended, with the connection it may have made. */
interface Attempt {
  error: Error
  /** The wait that the server requested. */
  after: number
  /** How long the connection was online. */
  online: number
}

/** The loop has space again, and fetches the frames that were left to the server. */
export const catchUp = new LinkLostError()

/** When the page or the network comes back, an attempt older than this gives way to a new one. */
const STALE = 5_000

/** Connector connects again and again until close, or until a retry is pointless and nobody requests one. */
export class Connector {
  /** The live connection, or the one under way. */
  link: Link | undefined
  private closed = false
  private suspended = false
  private trouble = Date.now() // since when connecting has failed while the page was awake
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

  /** delay returns the random wait before attempt n, counted from 0. */
  delay(n: number): number {
    const { min, max } = this.settings.backoff
    return (1 - Math.random() / 2) * Math.min(max, min * 2 ** n)
  }

  /** reconnect connects at once, whatever ended the last connection, and probes a live one. */
  reconnect(): void {
    const { state } = this.host.current
    this.suspended = false
    this.trouble = Date.now()
    if (state === 'online') this.link?.probe()
    else if (state === 'connecting') {
      if (this.link && Date.now() - this.link.began > STALE) this.link.end()
    } else if (state !== 'closed') {
      this.host.change({ state: 'connecting', until: 0, error: undefined }) // at once, so that nobody sees the old error
      this.nudge?.()
    }
  }

  /** wake is reconnect for a page or network that is back, which does not lift a rejection. */
  wake(): void {
    if (this.wanted()) this.reconnect()
  }

  /** doubt checks whether a live connection still works. */
  doubt(): void {
    if (this.host.current.state === 'online') this.link?.probe()
  }

  /** suspend ends the connection until reconnect or wake. */
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

  /** sleep waits. It returns true when it ended early. */
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
      // The platform rejects the address, as an https page does with ws.
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
    // Before ready the error frame says it, too, where the close frame was lost.
    if (code === CLOSE_NO_ACCESS || (code > 0 && !since && (said?.code === 'auth_failed' || said?.code === 'forbidden'))) {
      return { error: noAccess(said, error), after, online }
    }
    if (code === CLOSE_REPLACED) return { error: new ReplacedError(), after, online }
    if (code === CLOSE_TOO_BIG && since) host.outbox.tooBig()
    const status = /^Unexpected server response: (40[0134])/.exec(error.message)?.[1] // the text of ws; a browser tells nothing
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

/** noAccess takes the reason from the last error frame, or from the close frame where there was none. */
function noAccess(said: ErrorFrame | undefined, error: Error): NoAccessError {
  return said
    ? new NoAccessError(said.message, said.code)
    : new NoAccessError(error.message || "the server rejects this device: check the token, or ask the agent's owner")
}
