import { connect, createServer, type AddressInfo, type Server as Listener, type Socket } from 'node:net'
import type { Host } from './rig'

/**
 * CuttableNetwork is a network between one browser and a server that tests can cut. A browser in
 * offline mode would keep its sockets.
 */
export class CuttableNetwork implements Host {
  private readonly sockets = new Set<Socket>()
  private whole = true

  private constructor(
    private readonly host: Host,
    private readonly listener: Listener,
  ) {}

  static async lay(host: Host): Promise<CuttableNetwork> {
    const { hostname, port } = new URL(host.url)
    const listener = createServer((near) => {
      if (!wire.whole) return near.destroy()
      const far = connect(Number(port), hostname)
      for (const [one, other] of [[near, far], [far, near]] as const) {
        wire.sockets.add(one)
        one.on('error', () => {}) // close follows and says the same
        one.on('close', () => {
          wire.sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
    const wire = new CuttableNetwork(host, listener)
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    return wire
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}/`
  }

  /** cli runs a command at the server. Its links lead through this network. */
  async cli(...args: string[]): Promise<string> {
    return (await this.host.cli(...args)).replaceAll(this.host.url, this.url)
  }

  cut(): void {
    this.whole = false
    for (const socket of this.sockets) socket.destroy()
  }

  mend(): void {
    this.whole = true
  }

  async end(): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.listener.close(resolve))
  }
}
