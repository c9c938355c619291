import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, WebSocket } from 'ws'
import { open, type Config, type Device } from '../src/index.js'
import { eventually } from './wait.js'

export type Frame = Record<string, any>

/** Peer is one connection of a device to the scripted server. */
export class Peer {
  readonly got: Frame[] = []
  closed: number | undefined
  private read = 0

  constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => this.got.push(JSON.parse(data.toString()) as Frame))
    socket.on('close', (code) => (this.closed = code))
  }

  send(...frames: Frame[]): void {
    for (const frame of frames) this.socket.send(JSON.stringify(frame))
  }

  /** Returns the next frame that is not an ack, or the next of a type. */
  async next(type?: string): Promise<Frame> {
    return eventually(`a frame ${type ?? ''}`, () => {
      while (this.read < this.got.length) {
        const frame = this.got[this.read++]!
        if (type ? frame.t === type : frame.t !== 'ack') return frame
      }
      return undefined
    })
  }

  /** Reads the hello and answers it. */
  async welcome(ready: Frame = {}): Promise<Frame> {
    const hello = await this.next('hello')
    this.send(readyFrame(ready))
    return hello
  }
}

export const capabilities = {
  text: true, audio: true, media: true, prompt: true, edit: true, typing: true, avatar: true, deliver: true, resume: true, accepted: true,
  stop: true, delta: true, tool: true, media_url: true, push: false, shared: false, call: ['devices.list'], max_media_bytes: 8388608,
  max_frame_bytes: 16777216, chunk_bytes: 3145728, max_parts: 2048, min_chunk_bytes: 4096, max_uploads: 8, prompt_seconds: 300,
}

export function readyFrame(ready: Frame = {}): Frame {
  return {
    t: 'ready', session: 'mobile:tel-1', capabilities, protocol: 1, server: 'scripted/1', approved: true, agent: 'online',
    resume: { epoch: 'e1', from: 1, to: 0, lost: false }, ...ready,
  }
}

export function finalMessage(id: string, text: string, seq: number, more: Frame = {}): Frame {
  return { t: 'message', id, text, chunk: { index: 0, total: 1 }, final: true, seq, ...more }
}

/** Scripted is a server that a test controls frame by frame. */
export class Scripted {
  readonly peers: Peer[] = []
  /** Called for each connection, for tests with a behavior instead of a script. */
  serve: ((peer: Peer) => void) | undefined
  private taken = 0
  private devices: Device[] = []

  private constructor(
    private readonly http: Server,
    private readonly sockets: WebSocketServer,
  ) {
    sockets.on('connection', (socket) => {
      const peer = new Peer(socket)
      this.peers.push(peer)
      this.serve?.(peer)
    })
  }

  static async start(request: (q: IncomingMessage, r: ServerResponse) => void = (_, r) => r.writeHead(404).end()): Promise<Scripted> {
    const http = createServer(request)
    const server = new Scripted(http, new WebSocketServer({ server: http, path: '/ws' }))
    http.listen(0, '127.0.0.1')
    await once(http, 'listening')
    return server
  }

  get address(): string {
    return `ws://127.0.0.1:${(this.http.address() as AddressInfo).port}`
  }

  /** Returns the next connection. */
  async peer(): Promise<Peer> {
    const n = this.taken++
    return eventually('a connection', () => this.peers[n])
  }

  /** Opens a device of this server. It ends with the server. */
  async open(config: Partial<Config> = {}): Promise<Device> {
    const device = await open({
      url: this.address, token: 'secret', device: { id: 'tel-1' }, WebSocket, surroundings: false, backoff: { min: 1, max: 5 }, ...config,
    })
    this.devices.push(device)
    return device
  }

  async stop(): Promise<void> {
    await Promise.all(this.devices.map((device) => device.close()))
    for (const { socket } of this.peers) socket.terminate()
    this.sockets.close()
    this.http.closeAllConnections()
    this.http.close()
  }
}
