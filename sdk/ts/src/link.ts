import { LinkLostError } from './errors.js'

/** The part of a WebSocket that the SDK uses: browsers, Node 22, React Native and the package `ws` have it. */
export interface Socket {
  readonly readyState: number
  readonly bufferedAmount: number
  onopen: ((event: any) => void) | null
  onmessage: ((event: any) => void) | null
  onerror: ((event: any) => void) | null
  onclose: ((event: any) => void) | null
  send(data: string): void
  close(code?: number, reason?: string): void
}

/** Creates a Socket. */
export type SocketConstructor = new (url: string) => Socket

/** How a connection ended. code is that of the close frame, 0 where this side gave up. error says why. */
export interface Ending {
  code: number
  error: Error
}

/** A timer that fires this late was frozen: the page slept, so the silence of the server means nothing. */
export const FROZEN = 2_000

/** After the page or the network came back, a dead connection must be detected soon. */
const PROBE = 5_000

/** Link is one connection. */
export class Link {
  /** The time of the server's last sign of life; 0 since a ping. */
  heard = Date.now()
  readonly began = Date.now()
  /** The loop has no space, so durable frames are left to the server. */
  behind = false
  /** Resolves when the connection ended. */
  readonly ended: Promise<Ending>

  private readonly socket: Socket
  private finish!: (ending: Ending) => void
  private over: Error | undefined // why this side gave up
  private failure = ''
  private timer: ReturnType<typeof setTimeout> | undefined

  /** opened is called when frames may be sent, and received with each text message. */
  constructor(
    make: SocketConstructor,
    url: string,
    private readonly limits: { heartbeat: number; pongTimeout: number; connectTimeout: number },
    opened: () => void,
    received: (text: string) => void,
  ) {
    this.ended = new Promise((resolve) => (this.finish = resolve))
    const socket = (this.socket = new make(url))
    socket.onopen = () => {
      if (this.over) return socket.close()
      this.deadline(limits.connectTimeout)
      opened()
    }
    socket.onmessage = (event: { data: unknown }) => {
      if (this.over) return
      this.heard = Date.now()
      if (typeof event.data === 'string') received(event.data)
    }
    socket.onerror = (event: { message?: string }) => (this.failure = event?.message ?? '')
    socket.onclose = (event: { code: number; reason?: string }) => {
      clearTimeout(this.timer)
      const error = this.over ?? new Error(event.reason || this.failure || 'the connection ended or failed')
      this.finish({ code: this.over ? 0 : event.code, error })
    }
    this.deadline(limits.connectTimeout)
  }

  /** ready ends the wait for ready and starts the heartbeat. */
  ready(): void {
    this.beat(this.limits.heartbeat)
  }

  /** The bytes that the socket has not written yet. */
  get buffered(): number {
    return this.socket.bufferedAmount
  }

  /** send writes a frame. It returns false when the connection ended. */
  send(text: string): boolean {
    if (this.over || this.socket.readyState !== 1) return false
    this.socket.send(text)
    return true
  }

  /** end gives up the connection. The first reason counts. It sends a close frame and waits a moment for the server's. */
  end(error: Error = new LinkLostError()): void {
    if (this.over) return
    this.over = error
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      // ws waits 30 seconds for a peer that is gone, which keeps the process alive.
      ;(this.socket as { terminate?: () => void }).terminate?.()
      this.finish({ code: 0, error })
    }, 1_000)
    this.socket.close(1000)
  }

  /** probe checks at once whether the connection still works. */
  probe(): void {
    if (!this.over) this.ask(Math.min(PROBE, this.limits.pongTimeout))
  }

  private deadline(ms: number): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.end(new Error('the server did not answer in time')), ms)
  }

  private beat(ms: number): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      const quiet = Math.abs(Date.now() - this.heard) // setting the clock back must not hide a dead connection
      if (quiet >= this.limits.heartbeat) this.ask(this.limits.pongTimeout)
      else this.beat(this.limits.heartbeat - quiet)
    }, ms)
  }

  /** ask pings with a frame, because browsers hide the pings of the WebSocket. It gives up when nothing comes back (half-open TCP). */
  private ask(timeout: number): void {
    const asked = Date.now()
    this.heard = 0
    const before = this.buffered
    this.send('{"t":"ping"}')
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      if (this.heard) this.beat(this.limits.heartbeat - (Date.now() - this.heard))
      // A frozen page could not hear. And the pong may wait behind a long upload, whose progress is a sign of life.
      else if (Date.now() - asked > timeout + FROZEN || (before > 0 && this.buffered < before)) this.ask(timeout)
      else this.end(new Error('the server did not answer a ping'))
    }, timeout)
  }
}
