import { createHash } from 'node:crypto'
import { createServer, request as ask, type IncomingMessage, type Server as Listener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { READY } from './scriptedServer'
import type { Host } from './rig'

/**
 * FastServer serves the page of a real server, with a WebSocket of its own behind it that sends as
 * much as a test wants. Unlike scripted, it uses a real socket: nothing of the test runs in the
 * page.
 */
export class FastServer implements Host {
  private socket: Duplex | undefined

  private constructor(
    private readonly host: Host,
    private readonly listener: Listener,
  ) {}

  static async before(host: Host): Promise<FastServer> {
    const listener = createServer((request, response) => {
      const far = ask(new URL(request.url!, host.url), { method: request.method, headers: request.headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      })
      far.on('error', () => response.destroy())
      request.pipe(far)
    })
    const fast = new FastServer(host, listener)
    listener.on('upgrade', (request, socket) => fast.take(request, socket))
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    return fast
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}/`
  }

  cli(...args: string[]): Promise<string> {
    return this.host.cli(...args)
  }

  /** say sends a frame to the page. */
  say(frame: object): void {
    this.socket?.write(textFrame(JSON.stringify(frame)))
  }

  end(): Promise<void> {
    this.socket?.destroy()
    this.listener.closeAllConnections()
    return new Promise((resolve) => this.listener.close(() => resolve()))
  }

  /** take greets a page. Of what the page sends, it handles only pings. */
  private take(request: IncomingMessage, socket: Duplex): void {
    const key = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`)
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    this.socket = socket
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (data: Buffer) => {
      rest = Buffer.concat([rest, data])
      for (let text: string | undefined; ([text, rest] = readFrame(rest)), text !== undefined; ) {
        if (!text.startsWith('{')) continue
        const frame = JSON.parse(text) as { t: string; id?: string }
        if (frame.t === 'hello') this.say(READY)
        if (frame.t === 'ping') this.say({ t: 'pong', id: frame.id })
      }
    })
  }
}

/** textFrame encodes a text as one WebSocket frame, RFC 6455 §5.2. */
function textFrame(text: string): Buffer {
  const body = Buffer.from(text)
  const head = Buffer.alloc(body.length < 126 ? 2 : body.length < 65_536 ? 4 : 10)
  head[0] = 0x81
  if (head.length === 2) head[1] = body.length
  else if (head.length === 4) head.writeUInt16BE(body.length, (head[1] = 126) && 2)
  else head.writeBigUInt64BE(BigInt(body.length), (head[1] = 127) && 2)
  return Buffer.concat([head, body])
}

/** readFrame takes one masked client frame off the buffer. undefined: it is incomplete. */
function readFrame(data: Buffer): [text: string | undefined, rest: Buffer] {
  if (data.length < 6) return [undefined, data]
  const short = data[1]! & 0x7f
  const at = short < 126 ? 2 : short === 126 ? 4 : 10
  if (data.length < at + 4) return [undefined, data]
  const size = short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2))
  const end = at + 4 + size
  if (data.length < end) return [undefined, data]
  const mask = data.subarray(at, at + 4)
  const body = Buffer.from(data.subarray(at + 4, end).map((byte, i) => byte ^ mask[i % 4]!))
  return [(data[0]! & 0x0f) === 1 ? body.toString() : '', data.subarray(end)]
}
