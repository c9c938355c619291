import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server as HTTPServer, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { BINARY, DESKTOP, freePort, launch, noBrowser, online, PHONE, reads, say, until, Visitor, type Place } from './rig'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TOKEN = 'token-that-nobody-may-see'
const PHRASE = 'correct horse'

/** Gateway plays a Hermes gateway that repeats each message. */
class Gateway {
  token = TOKEN
  url = ''
  private server: HTTPServer | undefined

  async up(): Promise<void> {
    const port = await freePort()
    this.url = `http://127.0.0.1:${port}`
    this.server = createServer((request, response) => {
      const answer = (status: number, body: object) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
      const endpoint = (method: string, path: string) => ({ method, path })
      const route = `${request.method} ${request.url!.replace(/\?.*/, '')}`
      if (route === 'GET /health') return answer(200, { status: 'ok', platform: 'hermes-agent', version: '0.22.0' })
      if (request.headers.authorization !== 'Bearer ' + this.token) return answer(401, { error: { message: 'Invalid API key', code: 'invalid_api_key' } })
      switch (route) {
        case 'GET /v1/models':
          return answer(200, { object: 'list', data: [{ id: 'hermes-agent' }] })
        case 'GET /v1/capabilities':
          return answer(200, {
            platform: 'hermes-agent', model: 'hermes-agent', auth: { type: 'bearer' }, features: { session_chat_streaming: true },
            endpoints: {
              models: endpoint('GET', '/v1/models'), session_create: endpoint('POST', '/api/sessions'), session_messages: endpoint('GET', '/api/sessions/{session_id}/messages'),
              session_chat_stream: endpoint('POST', '/api/sessions/{session_id}/chat/stream'),
            },
          })
        case 'POST /api/sessions':
          return answer(201, { session: { id: 's', title: 's' } })
        case 'GET /api/sessions/s/messages':
          return answer(200, { session_id: 's', data: [] })
        case 'POST /api/sessions/s/chat/stream':
          return void this.echo(request, response)
      }
      return answer(404, {})
    }).listen(port, '127.0.0.1')
    await new Promise((resolve) => this.server!.once('listening', resolve))
  }

  /** echo plays a turn that repeats the message. */
  private async echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const part of request) body += String(part)
    const { message, input } = JSON.parse(body) as { message?: string; input?: string }
    const content = 'You said: ' + (message ?? input)
    const events: [string, object][] = [
      ['run.started', {}],
      ['message.started', { message: { id: 'm', role: 'assistant' } }],
      ['assistant.delta', { message_id: 'm', delta: content }],
      ['assistant.completed', { message_id: 'm', content, completed: true }],
      ['run.completed', { message_id: 'm', completed: true, messages: [{ role: 'assistant', content }] }],
      ['done', {}],
    ]
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    events.forEach(([name, data], i) => response.write(`event: ${name}\ndata: ${JSON.stringify({ ...data, session_id: 's', run_id: 'r', seq: i + 1 })}\n\n`))
    response.end()
  }

  down(): void {
    this.server?.closeAllConnections()
    this.server?.close()
  }
}

/** App is the real program in its own folder. */
class App implements Place {
  readonly data = mkdtempSync(join(tmpdir(), 'hermes-app-'))
  url = ''
  output = ''
  private process: ChildProcess | undefined

  get pid(): number {
    return this.process!.pid!
  }

  private spawn(...args: string[]): ChildProcess {
    const child = spawn(BINARY, ['app', '--no-browser', '--no-keyring', '--data', this.data, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: this.data } })
    child.stdout!.on('data', (text) => (this.output += text))
    child.stderr!.on('data', (text) => (this.output += text))
    return child
  }

  async up(): Promise<string> {
    this.output = ''
    this.process = this.spawn()
    await until(() => this.output.includes('Ctrl-C'), 'the app is up')
    this.url = /^ {2}page {2}(\S+)$/m.exec(this.output)![1]!
    return this.key()
  }

  private key(): string {
    return /http:\S+key=\S+/.exec(this.output)![0]
  }

  /** again starts the program a second time, which prints a link of the running one. */
  async again(): Promise<string> {
    this.output = ''
    const child = this.spawn()
    await new Promise((resolve) => child.once('close', resolve))
    return this.key()
  }

  async down(): Promise<void> {
    const gone = new Promise((resolve) => this.process?.once('exit', resolve))
    if (this.process?.kill('SIGINT')) await gone
    this.process = undefined
  }

  async end(): Promise<void> {
    await this.down()
    rmSync(this.data, { recursive: true, force: true })
  }
}

async function accessible(page: Page, screen: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.evaluate(axe)
    const findings = await page.evaluate(async () => {
      const { violations } = await (window as unknown as { axe: { run(o: object): Promise<{ violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe.run({ resultTypes: ['violations'] })
      return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ') + ' ' + node.failureSummary.replace(/\s+/g, ' ')).join(' | '))
    })
    assert.deepEqual(findings, [], `${screen} in ${colorScheme}`)
  }
}

describe('the direct client', { skip: noBrowser }, () => {
  const gateway = new Gateway()
  const app = new App()
  let browser: Browser
  before(async () => {
    await gateway.up()
    browser = await launch()
  })
  after(async () => {
    await browser?.close()
    await app.end()
    gateway.down()
  })

  const title = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
  const next = (page: Page) => page.getByRole('button', { name: 'Next' }).click()

  it('goes through the setup once, then opens the conversation', async () => {
    const visitor = await Visitor.come(browser, app, PHONE)
    const answers: string[] = []
    visitor.context.on('response', (response) => {
      if (response.url().includes('/app/')) void response.text().then((text) => answers.push(text), () => {})
    })
    const link = await app.up()
    const page = await visitor.open(link)
    assert.equal(page.url(), app.url)
    await title(page, 'Connect to your Hermes')
    await accessible(page, 'welcome')
    await next(page)
    await title(page, 'Remote address')
    await page.getByLabel('Address').fill('ftp://nowhere')
    await next(page)
    await page.getByRole('alert').waitFor()
    await accessible(page, 'a wrong address')
    await page.getByLabel('Address').fill(gateway.url)
    await next(page)
    await title(page, 'Local address')
    assert.equal(await page.getByLabel('Address').inputValue(), '')
    await page.getByLabel('Address').fill('http://192.168.7.7')
    await page.getByText('Use this address without encryption').waitFor()
    await next(page)
    await page.getByText('The address must start with https://.').waitFor()
    await page.locator('input[type=url]').fill('https://no-such-host.invalid')
    await accessible(page, 'local address')
    await next(page)
    await title(page, 'Sign in')
    await page.locator('input[type=password]').fill('wrong')
    await accessible(page, 'sign in')
    await next(page)
    await title(page, 'Stored credentials')
    await page.getByLabel('Passphrase', { exact: true }).fill(PHRASE)
    await page.getByLabel('Repeat the passphrase').fill('another')
    await next(page)
    await page.getByText("The passphrases don't match.").waitFor()
    await accessible(page, 'passphrase')
    await page.getByLabel('Repeat the passphrase').fill(PHRASE)
    await next(page)
    await title(page, 'Test')
    await page.getByText('The gateway rejected the credential.').waitFor()
    await page.getByText('Not tested: the other address must first show which gateway is yours.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Continue without this address' }).count(), 0)
    await accessible(page, 'a test that did not pass')
    await page.getByRole('button', { name: 'Back' }).click()
    await title(page, 'Sign in')
    await page.locator('input[type=password]').fill(TOKEN)
    await next(page)
    await title(page, 'Test')
    await page.getByText("This network doesn't know the host name.").waitFor()
    await accessible(page, 'an address that does not work')
    await page.getByRole('button', { name: 'Continue without this address' }).click()
    await title(page, 'Ready')
    await page.getByText('Works: Hermes 0.22.0.').waitFor()
    await accessible(page, 'ready')
    const jobs = page.getByRole('checkbox', { name: 'Show scheduled jobs' })
    assert.equal(await jobs.isChecked(), false)
    await jobs.click()
    await until(() => readFileSync(join(app.data, 'gateway.json'), 'utf8').includes('"jobs":"on"'), 'the answer is kept')
    await until(() => jobs.isChecked(), 'the page shows the answer')
    await page.getByText('Works: Hermes 0.22.0.').waitFor()
    await page.getByRole('button', { name: 'Start the conversation' }).click()
    await online(page)
    await say(page, 'hello')
    await reads(page, 'You said: hello')

    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Connection diagnostics' }).click()
    await page.getByText('Connected through the remote address.').waitFor()
    const shown = await page.locator('pre').last().textContent()
    assert.match(shown!, /route: remote/)
    assert.ok(!shown!.includes(new URL(gateway.url).host), 'diagnostics name the host')
    await accessible(page, 'diagnostics')
    await page.getByRole('dialog', { name: 'Connection diagnostics' }).getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Gateway and sign-in' }).click()
    await title(page, 'Remote address')
    assert.equal(await page.getByLabel('Address').inputValue(), gateway.url)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await online(page)
    await reads(page, 'You said: hello')

    // The key is in no history entry and works only once.
    assert.equal(await page.evaluate(() => history.length), 2) // about:blank and the page
    const stranger = await Visitor.come(browser, app)
    const refused = await stranger.context.newPage()
    assert.equal((await refused.goto(link))!.status(), 403)
    assert.equal((await refused.goto(app.url))!.status(), 401)
    assert.equal((await refused.goto(app.url + 'sw.js'))!.status(), 401)
    assert.deepEqual(await stranger.leave(), [])

    // No secret is stored in plain text.
    const places: Record<string, string> = { 'what the page was told': answers.join('\n'), output: app.output, 'the arguments': readFileSync(`/proc/${app.pid}/cmdline`, 'utf8') }
    for (const name of readdirSync(app.data, { recursive: true, encoding: 'utf8' })) {
      if (statSync(join(app.data, name)).isFile()) places[name] = readFileSync(join(app.data, name), 'latin1')
    }
    for (const [place, text] of Object.entries(places)) for (const secret of [TOKEN, PHRASE]) assert.ok(!text.includes(secret), `a secret is in ${place}`)
    assert.ok(Object.keys(places).length > 6 && answers.length > 5)

    // After the program ends and starts again, the page says so, then continues with the same
    // history at the same address.
    await app.down()
    const before = app.url
    await app.up()
    assert.equal(app.url, before)
    await page.reload()
    await title(page, 'The app is closed')
    await accessible(page, 'closed')
    await page.goto(await app.again())
    await title(page, 'Stored credentials')
    await page.getByLabel('Passphrase', { exact: true }).fill(PHRASE)
    await next(page)
    await reads(page, 'You said: hello')
    await online(page)
    await say(page, 'again')
    await reads(page, 'You said: again')
    assert.deepEqual(await visitor.leave().then((list) => list.filter((line) => !/status of 401/.test(line))), [])
  })

  it('asks to sign in again when the gateway rejects the credential', async () => {
    const visitor = await Visitor.come(browser, app, DESKTOP)
    gateway.token = 'rotated-token'
    await app.down()
    const page = await visitor.open(await app.up())
    await title(page, 'Stored credentials')
    await page.getByLabel('Passphrase', { exact: true }).fill(PHRASE)
    await next(page)
    await until(async () => {
      await page.reload() // the gateway rejects it a moment after the page opens
      return (await page.getByRole('heading', { level: 1, name: 'Sign in' }).count()) > 0 || (await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor({ timeout: 500 }).then(() => true, () => false))
    }, 'the credential is asked for')
    await page.getByRole('alert').filter({ hasText: 'rejected' }).waitFor()
    await page.locator('input[type=password]').fill('rotated-token')
    await next(page)
    await title(page, 'Ready')
    await page.getByRole('button', { name: 'Start the conversation' }).click()
    await online(page)
    assert.deepEqual(await visitor.leave(), [])
  })
})
