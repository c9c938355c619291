import { LinkLostError } from './errors.js'

/** What is used of a WebSocket: browsers, Node 22, React Native and the package `ws` all have it. */
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

/** Makes a Socket. */
export type SocketConstructor = new (url: string) => Socket

/** How a connection ended. code is that of the close frame, 0 where this side gave up; error says why in words. */
export interface Ending {
  code: number
  error: Error
}

/** A timer that fires so much later than it should was frozen: the page slept, and what it did not hear means nothing. */
export const FROZEN = 2_000

/** After the page or the network came back a dead connection must be found soon. */
const PROBE = 5_000

/** Link is one connection. */
export class Link {
  /** When the server last gave a sign of life; 0 since it was asked for one. */
  heard = Date.now()
  readonly began = Date.now()
  /** Durable frames are left to the server: the loop has no room. */
  behind = false
  /** Resolves once it is over. */
  readonly ended: Promise<Ending>

  private readonly socket: Socket
  private finish!: (ending: Ending) => void
  private over: Error | undefined // this side has given up
  private failure = ''
  private timer: ReturnType<typeof setTimeout> | undefined

  /** opened is called when frames may be sent, received with each text message. */
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
      const error = this.over ?? new Error(event.reason || this.failure || 'the connection ended, or none could be made')
      this.finish({ code: this.over ? 0 : event.code, error })
    }
    this.deadline(limits.connectTimeout)
  }

  /** ready ends the wait for it, and the heartbeat begins. */
  ready(): void {
    this.beat(this.limits.heartbeat)
  }

  /** Bytes that the socket still has to write. */
  get buffered(): number {
    return this.socket.bufferedAmount
  }

  /** send writes a frame; false: the connection is over. */
  send(text: string): boolean {
    if (this.over || this.socket.readyState !== 1) return false
    this.socket.send(text)
    return true
  }

  /** end gives the connection up; the first reason counts. The server is told, and given a moment to say that it heard. */
  end(error: Error = new LinkLostError()): void {
    if (this.over) return
    this.over = error
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      // ws waits half a minute for a peer that is gone, and keeps the process alive.
      ;(this.socket as { terminate?: () => void }).terminate?.()
      this.finish({ code: 0, error })
    }, 1_000)
    this.socket.close(1000)
  }

  /** probe asks at once whether the connection still lives. */
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
      const quiet = Math.abs(Date.now() - this.heard) // a clock that was set back must not hide a dead connection
      if (quiet >= this.limits.heartbeat) this.ask(this.limits.pongTimeout)
      else this.beat(this.limits.heartbeat - quiet)
    }, ms)
  }

  /** ask pings with a frame, for browsers hide the WebSocket's own pings, and gives up where nothing at all comes back (half-open TCP). */
  private ask(timeout: number): void {
    const asked = Date.now()
    this.heard = 0
    const before = this.buffered
    this.send('{"t":"ping"}')
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      if (this.heard) this.beat(this.limits.heartbeat - (Date.now() - this.heard))
      // What was frozen could not hear. And the pong may wait behind a long upload: one that goes on is a sign of life.
      else if (Date.now() - asked > timeout + FROZEN || (before > 0 && this.buffered < before)) this.ask(timeout)
      else this.end(new Error('the server did not answer a ping'))
    }, timeout)
  }
}
