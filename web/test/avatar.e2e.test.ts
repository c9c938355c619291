import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type Server as Stranger } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, describe, it } from 'node:test'
import type { Browser, Frame, Page } from 'playwright-core'
import { DESKTOP, launch, noBrowser, reads, say, Server, until, Visitor } from './rig'

/** The sample of doc/clients.md, as a reader would copy it. */
const sample = /^## The avatar page\n[\s\S]*?```html\n([\s\S]*?)```/m.exec(readFileSync('../doc/clients.md', 'utf8'))![1]!

describe("the owner's avatar page", { skip: noBrowser }, () => {
  let browser: Browser
  let stranger: Stranger | undefined
  let server: Server | undefined
  before(async () => {
    browser = await launch()
  })
  after(() => browser?.close())
  afterEach(async () => {
    await server?.end()
    stranger?.close()
    server = stranger = undefined
  })

  /**
   * shows starts a server with this avatar page, below a path and with a query. It returns the
   * page's URL.
   */
  async function shows(content: string, files: Record<string, string> = {}): Promise<string> {
    stranger = createServer((request, response) => {
      const file = files[request.url!]
      response.setHeader('Content-Type', file === undefined ? 'text/html; charset=utf-8' : 'text/javascript')
      response.end(file ?? content)
    })
    await new Promise<void>((resolve) => stranger!.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/faces/avatar.html?mood=calm`
    server = await Server.start({ MOBILE_AVATAR_URL: address })
    return address
  }

  async function frameOf(page: Page): Promise<Frame> {
    const frame = await (await page.waitForSelector('iframe.agent-avatar')).contentFrame()
    await frame!.waitForLoadState()
    return frame!
  }

  it('gets the calls that clients.md promises: its sample works in our page', async () => {
    await shows(sample)
    const visitor = await Visitor.come(browser, server!, { ...DESKTOP, permissions: ['microphone'] })
    const page = await visitor.pair()
    const frame = await frameOf(page)
    assert.equal(await frame.evaluate(() => document.compatMode), 'CSS1Compat') // its doctype still comes first
    await frame.waitForSelector('body.idle')
    await frame.evaluate(() => {
      const seen: string[] = ((window as unknown as { seen: string[] }).seen = [])
      new MutationObserver(() => seen.at(-1) === document.body.className || seen.push(document.body.className)).observe(document.body, { attributeFilter: ['class'] })
    })
    await say(page, 'hello avatar')
    await reads(page, 'You said: hello avatar')
    await frame.waitForFunction(() => document.getElementById('words')!.textContent === 'You said: hello avatar')
    await frame.waitForSelector('body.idle')
    assert.deepEqual(await frame.evaluate(() => (window as unknown as { seen: string[] }).seen), ['thinking', 'speaking', 'idle'])
    await page.getByRole('button', { name: 'Record a voice message' }).click()
    await frame.waitForFunction(() => {
      const scale = /scale\((.+)\)/.exec(document.getElementById('face')!.style.transform)
      return scale && Number(scale[1]) > 1
    })
    await page.getByRole('button', { name: 'Discard the recording' }).click()
    assert.deepEqual(await visitor.leave(), [])
  })

  it('gets each call once, also if it listens to messages too or sets the object late', async () => {
    const address = await shows(`<!doctype html><title>avatar</title><body><script>
      window.calls = []
      const note = (call) => (value) => { calls.push(call + ' ' + value); if (call === 'setState') throw new Error('a page may fail') }
      setTimeout(() => {
        window.hermesAvatar = { setState: note('setState'), speak: note('speak') }
        addEventListener('message', ({ data }) => window.hermesAvatar[data.hermesAvatar]?.(data.value))
        parent.postMessage({ hermesAvatar: 'ready' }, '*')
      }, 300)
    </script><script src="beside.js"></script>`, { '/faces/beside.js': 'window.beside = location.search' })
    const visitor = await Visitor.come(browser, server!)
    const page = await visitor.pair()
    const frame = await frameOf(page)
    assert.equal(await frame.evaluate(() => (window as unknown as { beside: string }).beside), '?mood=calm')
    const calls = () => frame.evaluate(() => (window as unknown as { calls: string[] }).calls)
    await until(async () => (await calls()).includes('setState idle'), 'it is called when it is there')
    await say(page, 'once')
    await until(async () => (await calls()).includes('speak You said: once'), 'it speaks')
    await until(async () => (await calls()).at(-1) === 'setState idle', 'it rests')
    const all = await calls()
    assert.ok(all.includes('setState thinking') && all.includes('setState speaking'), all.join())
    assert.equal(all.filter((line) => line.startsWith('speak')).length, 1, all.join())
    const trouble = await visitor.leave()
    assert.deepEqual(trouble.filter((line) => !line.includes('a page may fail')), ['asked a stranger: ' + address.replace('avatar.html?mood=calm', 'beside.js')])
  })

  it('reaches nothing of ours, however hostile', async () => {
    const address = await shows(`<!doctype html><body><script>
      window.hermesAvatar = { setState() {}, speak() {}, setVolume() {} }
      const tries = {
        origin: () => self.origin,
        page: () => parent.document.title,
        storage: () => localStorage.length,
        session: () => sessionStorage.length,
        cookie: () => document.cookie,
        database: () => new Promise((done, fail) => { const r = indexedDB.open('x'); r.onsuccess = () => done('opened'); r.onerror = () => fail(r.error) }),
        caches: () => caches.keys(),
        worker: () => navigator.serviceWorker.register('/sw.js'),
        read: () => fetch(new URL('/', OURS), { credentials: 'include' }).then((r) => r.text()),
        admin: () => fetch(new URL('/admin/api/overview', OURS), { credentials: 'include', headers: { 'X-Hermes-Admin': '1' } }).then((r) => r.text()),
        socket: () => new Promise((done, fail) => { const s = new WebSocket(new URL('/ws', OURS)); s.onopen = () => done('open'); s.onerror = () => fail(new Error('refused')) }),
        away: () => { top.location = 'about:blank' },
        popup: () => window.open('/', '_blank').location,
      }
      window.results = (ours) => {
        window.OURS = ours
        return Promise.all(Object.entries(tries).map(async ([name, attempt]) => {
          try { return [name, 'got ' + (await attempt())] } catch (error) { return [name, 'refused'] }
        }))
      }
    </script>`)
    const visitor = await Visitor.come(browser, server!)
    const page = await visitor.pair()
    await visitor.context.addCookies([{ name: 'owner', value: 'secret', url: server!.url, sameSite: 'Strict', httpOnly: false }])
    const cookies: string[] = []
    visitor.context.on('request', (request) => void request.allHeaders().then((headers) => {
      if (headers.cookie && headers.origin === 'null') cookies.push(request.url())
    }).catch(() => {}))
    const frame = await frameOf(page)
    const got = await frame.evaluate((ours) => (window as unknown as { results(ours: string): Promise<[string, string][]> }).results(ours), server!.url)
    assert.deepEqual(got, got.map(([name]) => [name, name === 'origin' ? 'got null' : 'refused']))
    assert.equal(got.length, 13)
    assert.equal(new URL(page.url()).origin + '/', server!.url)
    assert.deepEqual(cookies, [])
    // Opened directly, it is at its own URL, not ours.
    const alone = await visitor.open(server!.url + 'avatar')
    assert.equal(alone.url(), address)
    // The browser logs each refused attempt.
    await visitor.leave()
  })

  it("is shown even if the server can't fetch it", async () => {
    const address = await shows('<title>no</title>')
    stranger!.removeAllListeners('request')
    stranger!.on('request', (request, response) => {
      response.setHeader('Content-Type', 'text/html')
      if (!request.headers['sec-fetch-dest']) response.statusCode = 403 // not a browser
      response.end(`<script>
        window.heard = []
        addEventListener('message', (e) => heard.push(e.data.hermesAvatar))
        parent.postMessage({ hermesAvatar: 'ready' }, '*')
      </script>`)
    })
    const visitor = await Visitor.come(browser, server!)
    const page = await visitor.pair()
    await until(() => page.frames().some((frame) => frame.url() === address), 'the browser loads it')
    const frame = page.frames().find((frame) => frame.url() === address)!
    await frame.waitForFunction(() => (window as unknown as { heard: string[] }).heard.includes('setState'))
    assert.equal(await frame.evaluate(() => self.origin), 'null')
    assert.deepEqual(await visitor.leave(), ['asked a stranger: ' + address])
  })
})
