import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** The fault of one TCP connection. */
export interface Fault {
  /** Reset the connection after this many bytes, both ways together. */
  cutAfter?: number
  /** Go silent after this many bytes: forward nothing, close nothing. */
  hangAfter?: number
  /** Delay each piece, in milliseconds. */
  delay?: number
  /** Reset the connection at this text of the server, before forwarding it. */
  cutAt?: string
}

/** Proxy is a bad network before a server. The n-th connection has the n-th fault; later connections have none. */
export class Proxy {
  private readonly open = new Set<Socket>()
  connections = 0

  private constructor(
    private readonly server: Server,
    private readonly target: () => number,
    readonly faults: Fault[],
  ) {
    server.on('connection', (client) => this.serve(client))
  }

  static async start(target: () => number, faults: Fault[] = []): Promise<Proxy> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Proxy(server, target, faults)
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.server.address() as AddressInfo).port}/ws`
  }

  /** cut resets all connections. */
  cut(): void {
    for (const socket of this.open) socket.resetAndDestroy()
  }

  stop(): void {
    this.cut()
    this.server.close()
  }

  private serve(client: Socket): void {
    const fault = this.faults[this.connections++] ?? {}
    const server = connect(this.target(), '127.0.0.1')
    let bytes = 0
    let heard = ''
    const both = [client, server]
    const reset = () => both.forEach((socket) => socket.resetAndDestroy())
    for (const [from, to] of [[client, server], [server, client]] as const) {
      this.open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        this.open.delete(from)
        if (fault.hangAfter === undefined || bytes <= fault.hangAfter) to.destroy()
      })
      from.on('data', (data: Buffer) => {
        const room = (fault.cutAfter ?? Infinity) - bytes
        bytes += data.length
        if (fault.hangAfter !== undefined && bytes > fault.hangAfter) return
        if (fault.cutAt && from === server) {
          heard = (heard + data.toString('latin1')).slice(-65536)
          if (heard.includes(fault.cutAt)) return reset()
        }
        const forward = () => {
          if (room >= data.length) to.write(data)
          else to.write(data.subarray(0, Math.max(room, 0)), reset)
        }
        if (fault.delay) setTimeout(forward, fault.delay)
        else forward()
      })
    }
  }
}
