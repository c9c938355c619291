import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { promisify } from 'node:util'
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'

const run = promisify(execFile)
export const BINARY = process.env.HERMES_MOBILE_BIN ?? join(process.cwd(), '../bin/hermes-mobile')
export const TOKEN = '7'.repeat(64)

/**
 * freePort finds an unused port below those that systems assign, because one of these may be taken
 * before a server binds to it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (free) return port
  }
}

/** Place is what a visitor opens. */
export interface Place {
  readonly url: string
  cli?(...args: string[]): Promise<string>
}

/** Host is a server that also has commands. */
export interface Host extends Place {
  cli(...args: string[]): Promise<string>
}

/**
 * Server is the real binary in its own folder, with the demo agent unless MOBILE_AGENT names
 * another.
 */
export class Server implements Host {
  readonly data = mkdtempSync(join(tmpdir(), 'hermes-web-'))
  private process: ChildProcess | undefined

  private constructor(
    readonly port: number,
    /** The owner's settings. Changes apply with the next up. */
    readonly env: Record<string, string>,
  ) {}

  static async start(env: Record<string, string> = {}, port?: number): Promise<Server> {
    const server = new Server(port ?? (await freePort()), env)
    await server.up()
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`
  }

  async up(): Promise<void> {
    this.process = spawn(BINARY, ['serve', '--agent', this.env.MOBILE_AGENT ?? 'demo', '--data', this.data, '--host', '127.0.0.1', '--port', String(this.port)], {
      stdio: 'ignore', env: { PATH: process.env.PATH, HOME: this.data, MOBILE_TOKEN: TOKEN, ...this.env },
    })
    await until(async () => (await fetch(this.url + 'healthz').catch(() => undefined))?.ok, 'the server is up')
  }

  async down(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const { process } = this
    if (!process) return
    const gone = new Promise((resolve) => process.once('exit', resolve))
    process.kill(signal)
    await gone
    this.process = undefined
  }

  async end(): Promise<void> {
    await this.down()
    rmSync(this.data, { recursive: true, force: true })
  }

  /** cli runs a command of the binary for this server and returns its output. */
  async cli(...args: string[]): Promise<string> {
    return (await run(BINARY, [...args, '--data', this.data], { env: { PATH: process.env.PATH, HOME: this.data } })).stdout
  }

  pairingLink(user = ''): Promise<string> {
    return pairingLink(this, user)
  }
}

/**
 * adminLink returns a one-time link to the admin UI. A fragment such as #/devices can follow it.
 */
export async function adminLink(host: Host): Promise<string> {
  return (JSON.parse(await host.cli('admin', '--json')) as { url: string }).url
}

/**
 * pairingLink returns a pairing link for an existing user, or for a new one. A trusted device can
 * answer cards at once.
 */
export async function pairingLink(host: Place, user = '', trusted = true): Promise<string> {
  return (JSON.parse(await host.cli!('pair', '--json', ...(trusted ? ['--trusted'] : []), ...(user ? ['--user', user] : []))) as { link: string }).link
}

/** The default timeout. The real Hermes on a busy machine has taken more than 30 s for a turn. */
const TIMEOUT = 90_000

/** until waits for a condition. */
export async function until(condition: () => unknown, what: string, limit = TIMEOUT): Promise<void> {
  for (const end = Date.now() + limit; ; ) {
    if (await condition()) return
    if (Date.now() > end) throw new Error('timed out waiting until ' + what)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const CHROMIUM = process.env.CHROMIUM || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path))
/** Why the tests in a browser are skipped, if they are. */
export const noBrowser = CHROMIUM ? false : 'Chromium is missing: run test/web/install.sh as root, or set CHROMIUM to its path'

const OPTIONS = {
  executablePath: CHROMIUM,
  args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', '--autoplay-policy=no-user-gesture-required',
    // A browser contacts its vendor on its own, so only this machine can be resolved.
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
  ],
}

export function launch(): Promise<Browser> {
  return chromium.launch(OPTIONS)
}

/**
 * launchOpen starts a browser that other tools can control through a port, with the profile in a
 * folder.
 */
export function launchOpen(folder: string, port: number, more: string[] = []): Promise<BrowserContext> {
  return chromium.launchPersistentContext(folder, { ...OPTIONS, locale: 'en-GB', args: [...OPTIONS.args, `--remote-debugging-port=${port}`, ...more] })
}

export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, locale: 'en-GB' }
export const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 800 }, locale: 'en-GB' }

/** Visitor is one user's browser, which records everything that must not happen. */
export class Visitor {
  readonly trouble: string[] = []
  /** Requests to anything but the server. */
  readonly strangers: string[] = []

  private constructor(
    readonly context: BrowserContext,
    readonly server: Place,
  ) {}

  static async come(browser: Browser, server: Place, options: BrowserContextOptions = DESKTOP): Promise<Visitor> {
    return Visitor.of(await browser.newContext({ permissions: [], ...options }), server)
  }

  /** of creates a visitor in an existing browser context. */
  static async of(context: BrowserContext, server: Place): Promise<Visitor> {
    const visitor = new Visitor(context, server)
    await visitor.context.addInitScript(() => {
      const page = window as unknown as { ran: number; violations: string[] }
      page.ran = 0
      page.violations = []
      document.addEventListener('securitypolicyviolation', (e) => page.violations.push(`${e.violatedDirective} ${e.blockedURI}`))
    })
    visitor.context.on('request', (request) => {
      if (/^https?:/.test(request.url()) && !request.url().startsWith(server.url)) visitor.strangers.push(request.url())
    })
    return visitor
  }

  async open(url = this.server.url): Promise<Page> {
    const page = await this.context.newPage()
    page.setDefaultTimeout(TIMEOUT)
    page.on('pageerror', (error) => this.trouble.push(String(error.stack)))
    page.on('console', (message) => {
      // Without a network the browser logs errors by itself.
      if (message.type() === 'error' && !/net::ERR_|WebSocket connection to .* failed/.test(message.text())) this.trouble.push(message.text())
    })
    await page.goto(url)
    return page
  }

  /** pair pairs the browser with a link from the owner. */
  async pair(name = 'Browser', user = '', trusted = true): Promise<Page> {
    const page = await this.open(await pairingLink(this.server, user, trusted))
    await page.getByLabel('Device name').fill(name)
    if (user) {
      await page.getByText('More', { exact: true }).click()
      await page.getByLabel('User').fill(user)
    }
    await page.getByRole('button', { name: 'Connect' }).click()
    await online(page)
    return page
  }

  /** leave ends the visit and returns what must not have happened. */
  async leave(): Promise<string[]> {
    for (const page of this.context.pages()) {
      const violations = await page.evaluate(() => (window as unknown as { violations?: string[] }).violations ?? []).catch(() => [])
      this.trouble.push(...violations.map((v) => 'content security policy: ' + v))
    }
    await this.context.close()
    return [...this.trouble, ...this.strangers.map((url) => 'asked a stranger: ' + url)]
  }
}

/** BrowserRig is the browser that the tests of a describe share. */
export class BrowserRig {
  browser!: Browser
}

/** ServerRig is the browser and the server that the tests of a describe share. */
export class ServerRig extends BrowserRig {
  server!: Server

  /** visit opens a browser context of its own for one user. */
  visit(options?: BrowserContextOptions): Promise<Visitor> {
    return Visitor.come(this.browser, this.server, options)
  }
}

/** browserRig starts a browser before the tests of a describe, and closes it after them. */
export function browserRig(): BrowserRig {
  const rig = new BrowserRig()
  share(rig)
  return rig
}

/** serverRig starts a server with these settings and a browser, and ends both after the tests. */
export function serverRig(env?: Record<string, string>): ServerRig {
  const rig = new ServerRig()
  before(async () => {
    rig.server = await Server.start(env)
  })
  share(rig)
  after(() => rig.server?.end())
  return rig
}

function share(rig: BrowserRig): void {
  before(async () => {
    rig.browser = await launch()
  })
  after(() => rig.browser?.close())
}

export async function online(page: Page): Promise<void> {
  await page.waitForSelector('[data-state=online]')
}

/**
 * say sends a text. Nothing can be written while a dialog is open, and one may close a moment after
 * its effect shows.
 */
export async function say(page: Page, text: string): Promise<void> {
  await page.locator('dialog[open]').waitFor({ state: 'detached' })
  await page.locator('#composer').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** reads waits for a message from the agent with this text. */
export async function reads(page: Page, text: string | RegExp): Promise<void> {
  await page.locator('.theirs').filter({ hasText: text }).last().waitFor()
}
