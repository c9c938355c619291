import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from './wait.js'

const program = join(process.cwd(), '../..', 'bin/hermes-mobile')

/** RealServer is the built program with the demo agent and its own data folder. */
export class RealServer {
  static readonly token = 'app-token-of-the-sdk-tests-0123456789'
  static readonly deliverToken = 'deliver-token-of-the-sdk-tests-01234'
  private readonly folder = mkdtempSync(join(tmpdir(), 'hm-sdk-'))
  private process: ChildProcess | undefined
  private log = ''
  port = 0

  constructor(private readonly settings: Record<string, string> = {}) {}

  static async start(settings?: Record<string, string>): Promise<RealServer> {
    const server = new RealServer(settings)
    await server.start()
    return server
  }

  private get env(): Record<string, string> {
    return {
      PATH: process.env.PATH!, HOME: this.folder, MOBILE_DATA: join(this.folder, 'data'), MOBILE_AGENT: 'demo', MOBILE_PORT: String(this.port),
      MOBILE_TOKEN: RealServer.token, MOBILE_DELIVER_TOKENS: 'cron=' + RealServer.deliverToken, MOBILE_ALLOW_ALL_USERS: '1', ...this.settings,
    }
  }

  /** start resolves once the server listens. Later starts use the same port. */
  async start(): Promise<void> {
    this.log = ''
    const child = (this.process = spawn(program, ['serve'], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] }))
    const take = (data: Buffer) => (this.log += data.toString())
    child.stdout!.on('data', take)
    child.stderr!.on('data', take)
    const said = await eventually('the server listens', () => {
      if (child.exitCode !== null) throw new Error('the server ended: ' + this.log)
      return /listening +ws:\/\/127\.0\.0\.1:(\d+)\/ws/.exec(this.log)
    })
    this.port = Number(said[1])
  }

  /** kill ends the server like a crash. */
  async kill(): Promise<void> {
    this.process!.kill('SIGKILL')
    if (this.process!.exitCode === null && this.process!.signalCode === null) await once(this.process!, 'exit')
  }

  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** command runs a command of the program against the running server. */
  async command(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(program, args, { env: this.env })
    return stdout
  }
}
