import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server as Listener, type Socket } from 'node:net'
import type { Server } from './rig'

/**
 * ThrottledNetwork is a network in front of a server that can hold back what the page sends and cut
 * every connection.
 */
export class ThrottledNetwork {
  private readonly sockets = new Set<Socket>()
  private held = false
  /** The bytes that the page may still send on each connection after close. */
  private room = 0

  private constructor(
    private readonly listener: Listener,
    private readonly target: Server,
  ) {
    listener.on('connection', (client) => this.serve(client))
  }

  static async start(target: Server): Promise<ThrottledNetwork> {
    const listener = createServer()
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    return new ThrottledNetwork(listener, target)
  }

  /** The server as it is reached through this network. */
  get server(): Server {
    const url = `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}/`
    const cli = async (...args: string[]) => (await this.target.cli(...args)).replaceAll(this.target.url, url)
    return Object.create(this.target, { url: { value: url }, cli: { value: cli } }) as Server
  }

  /** close holds back what the page sends, after this many more bytes on each connection. */
  close(room: number): void {
    this.held = true
    this.room = room
  }

  open(): void {
    this.held = false
    for (const socket of this.sockets) socket.resume()
  }

  cut(): void {
    for (const socket of this.sockets) socket.resetAndDestroy()
  }

  end(): void {
    this.cut()
    this.listener.close()
  }

  private serve(client: Socket): void {
    const server = connect(this.target.port, '127.0.0.1')
    let sent = 0
    for (const [from, to] of [[client, server], [server, client]] as const) {
      this.sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        this.sockets.delete(from)
        to.destroy()
      })
      from.on('data', (data: Buffer) => {
        to.write(data)
        if (from !== client || !this.held) return
        sent += data.length
        if (sent > this.room) client.pause()
      })
    }
  }
}
