import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'

const run = promisify(execFile)
export const BINARY = process.env.HERMES_MOBILE_BIN ?? join(process.cwd(), '../bin/hermes-mobile')
export const TOKEN = '7'.repeat(64)

/** freePort finds a port on which nothing listens, below those that systems hand out: one of these may be taken before a server asks for it by number. */
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

/** Place is what a visitor comes to. */
export interface Place {
  readonly url: string
  cli?(...args: string[]): Promise<string>
}

/** Host is a server, which has commands too. */
export interface Host extends Place {
  cli(...args: string[]): Promise<string>
}

/** Server is the real binary in a folder of its own, with the demo agent where MOBILE_AGENT names no other. */
export class Server implements Host {
  readonly data = mkdtempSync(join(tmpdir(), 'hermes-web-'))
  private process: ChildProcess | undefined

  private constructor(
    readonly port: number,
    /** The owner's settings; they hold from the next up on. */
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

  /** cli runs a command of the binary on this server and gives what it printed. */
  async cli(...args: string[]): Promise<string> {
    return (await run(BINARY, [...args, '--data', this.data], { env: { PATH: process.env.PATH, HOME: this.data } })).stdout
  }

  pairingLink(user = ''): Promise<string> {
    return pairingLink(this, user)
  }
}

/** adminLink opens the admin UI once. The browser keeps a place that follows it, such as #/devices. */
export async function adminLink(host: Host): Promise<string> {
  return (JSON.parse(await host.cli('admin', '--json')) as { url: string }).url
}

/** pairingLink makes a link for a user, who may be known already, or for a new one. A trusted device may answer cards at once. */
export async function pairingLink(host: Place, user = '', trusted = true): Promise<string> {
  return (JSON.parse(await host.cli!('pair', '--json', ...(trusted ? ['--trusted'] : []), ...(user ? ['--user', user] : []))) as { link: string }).link
}

/** until waits for a condition. */
/** How long is waited for what must come. The real Hermes on a machine with other work has taken more than 30 s for a turn. */
const PATIENCE = 90_000

export async function until(condition: () => unknown, what: string, limit = PATIENCE): Promise<void> {
  for (const end = Date.now() + limit; ; ) {
    if (await condition()) return
    if (Date.now() > end) throw new Error('waited in vain until ' + what)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const CHROMIUM = process.env.CHROMIUM || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path))
/** Why the tests in a browser are left out, where they are. */
export const noBrowser = CHROMIUM ? false : 'there is no Chromium: run test/web/install.sh as root, or name one with CHROMIUM'

const OPTIONS = {
  executablePath: CHROMIUM,
  args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', '--autoplay-policy=no-user-gesture-required',
    // A browser asks its maker about many things by itself: nothing but this machine can be found.
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
  ],
}

export function launch(): Promise<Browser> {
  return chromium.launch(OPTIONS)
}

/** launchOpen starts a browser that other tools may drive by a port, with the data of one person in a folder. */
export function launchOpen(folder: string, port: number, more: string[] = []): Promise<BrowserContext> {
  return chromium.launchPersistentContext(folder, { ...OPTIONS, locale: 'en-GB', args: [...OPTIONS.args, `--remote-debugging-port=${port}`, ...more] })
}

export const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, locale: 'en-GB' }
export const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 800 }, locale: 'en-GB' }

/** Visitor is a browser of one person, which notes everything that must not happen. */
export class Visitor {
  readonly trouble: string[] = []
  /** Requests to anybody but the server. */
  readonly strangers: string[] = []

  private constructor(
    readonly context: BrowserContext,
    readonly server: Place,
  ) {}

  static async come(browser: Browser, server: Place, options: BrowserContextOptions = DESKTOP): Promise<Visitor> {
    return Visitor.of(await browser.newContext({ permissions: [], ...options }), server)
  }

  /** of has a visitor in a browser that is there. */
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
    page.setDefaultTimeout(PATIENCE)
    page.on('pageerror', (error) => this.trouble.push(String(error.stack)))
    page.on('console', (message) => {
      // Without a network the browser says so itself.
      if (message.type() === 'error' && !/net::ERR_|WebSocket connection to .* failed/.test(message.text())) this.trouble.push(message.text())
    })
    await page.goto(url)
    return page
  }

  /** pair comes in by a link of the owner. */
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

  /** leave ends the visit. It returns what happened that must not. */
  async leave(): Promise<string[]> {
    for (const page of this.context.pages()) {
      const violations = await page.evaluate(() => (window as unknown as { violations?: string[] }).violations ?? []).catch(() => [])
      this.trouble.push(...violations.map((v) => 'content security policy: ' + v))
    }
    await this.context.close()
    return [...this.trouble, ...this.strangers.map((url) => 'asked a stranger: ' + url)]
  }
}

export async function online(page: Page): Promise<void> {
  await page.waitForSelector('[data-state=online]')
}

/** say writes a text and sends it. Nothing can be written while a dialog is open, which may close a moment after what it did shows. */
export async function say(page: Page, text: string): Promise<void> {
  await page.locator('dialog[open]').waitFor({ state: 'detached' })
  await page.locator('#composer').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** reads waits for a message of the agent with this text. */
export async function reads(page: Page, text: string | RegExp): Promise<void> {
  await page.locator('.theirs').filter({ hasText: text }).last().waitFor()
}
