import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { browserRig, noBrowser, online, PHONE, reads, say, Server, TOKEN, until, Visitor } from './rig'

describe('the connection', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = browserRig()

  /** on runs a test with its own server. */
  const on = (name: string, run: (server: Server) => Promise<void>, env?: Record<string, string>) =>
    it(name, async () => {
      const server = await Server.start(env)
      try {
        await run(server)
      } finally {
        await server.end()
      }
    })

  on('opens offline with the history, and sends when it is back online', async (server) => {
    const visitor = await Visitor.come(rig.browser, server, PHONE)
    const page = await visitor.pair()
    await say(page, 'remember this')
    await reads(page, 'You said: remember this')
    await say(page, '/demo image')
    await page.locator('.picture img').waitFor()
    await page.evaluate(() => navigator.serviceWorker.ready)
    // The worker caches nothing that the server sent.
    const kept = await page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys()).map((request) => request.url)))).flat())
    assert.ok(kept.length > 5 && kept.every((url) => !/\/media\/|\/ws|healthz/.test(url)), kept.join())
    await server.down('SIGKILL')
    await page.reload()
    await reads(page, 'You said: remember this')
    await page.locator('.picture img').waitFor()
    await page.getByText('Connection lost.').or(page.getByText("Can't reach the server.")).first().waitFor()
    await say(page, 'written while away')
    await page.locator('[data-progress=waiting]').waitFor()
    await page.reload()
    await page.locator('.mine').filter({ hasText: 'written while away' }).waitFor()
    await server.up()
    await page.getByRole('button', { name: 'Retry now' }).click().catch(() => {}) // it may already be back on its own
    await reads(page, 'You said: written while away')
    assert.equal(await page.locator('.mine').filter({ hasText: 'written while away' }).count(), 1)
    assert.equal(await page.locator('[data-progress=waiting]').count(), 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  on('shows that it is offline, and reconnects without an error', async (server) => {
    const visitor = await Visitor.come(rig.browser, server)
    const page = await visitor.pair()
    await visitor.context.setOffline(true)
    await server.down('SIGKILL') // a browser in offline mode keeps its sockets
    await page.getByText("You're offline.").waitFor()
    assert.equal(await page.getByText("Can't reach the server").count(), 0)
    await say(page, 'later')
    await server.up()
    await visitor.context.setOffline(false)
    await reads(page, 'You said: later')
    assert.equal(await page.getByText("Can't reach the server").count(), 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  on('wakes up without a false warning', async (server) => {
    const visitor = await Visitor.come(rig.browser, server, PHONE)
    const page = await visitor.pair()
    await page.evaluate(() => {
      const page = window as unknown as { told: string[] }
      page.told = []
      new MutationObserver(() => page.told.push(document.querySelector('.connection')?.textContent ?? '')).observe(document.querySelector('.connection')!, { childList: true, subtree: true, characterData: true })
    })
    const devtools = await visitor.context.newCDPSession(page)
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
    await server.down('SIGKILL') // the connection drops while the phone sleeps
    await server.up()
    await devtools.send('Page.setWebLifecycleState', { state: 'active' })
    await online(page)
    await say(page, 'good morning')
    await reads(page, 'You said: good morning')
    const told = await page.evaluate(() => (window as unknown as { told: string[] }).told)
    assert.ok(!told.some((text) => /cannot be reached|No access/.test(text)), told.join(' | '))
    assert.deepEqual(await visitor.leave(), [])
  })

  on('is in one tab at a time, which the user chooses', async (server) => {
    const visitor = await Visitor.come(rig.browser, server)
    const first = await visitor.pair()
    await say(first, 'in the first')
    await reads(first, 'You said: in the first')
    const second = await visitor.open()
    await online(second)
    await reads(second, 'You said: in the first')
    await first.getByText('open in another tab').waitFor()
    await say(second, 'in the second')
    await reads(second, 'You said: in the second')
    await first.getByRole('button', { name: 'Use it here' }).click()
    await reads(first, 'You said: in the second')
    await second.getByText('open in another tab').waitFor()
    await say(first, 'and back')
    await reads(first, 'You said: and back')
    assert.equal(await first.locator('.theirs').count(), 3)
    assert.deepEqual(await visitor.leave(), [])
  })

  on('shows that the agent is offline and how many messages wait', async (server) => {
    const visitor = await Visitor.come(rig.browser, server)
    const page = await visitor.pair()
    await say(page, '/demo away 4')
    await page.getByText('Agent offline').waitFor()
    await say(page, 'are you there?')
    await page.locator('[data-progress=queued]').waitFor()
    await page.getByText('1 message is waiting.').waitFor()
    await reads(page, 'You said: are you there?')
    await page.locator('[data-progress=queued]').waitFor({ state: 'detached' })
    assert.deepEqual(await visitor.leave(), [])
  })

  on('lets a device with a token in as soon as the owner approves it', async (server) => {
    const visitor = await Visitor.come(rig.browser, server, PHONE)
    const page = await visitor.open()
    await page.getByRole('button', { name: 'Address and token' }).click()
    await page.getByLabel('Token').fill('9'.repeat(64))
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('alert').filter({ hasText: 'wrong' }).waitFor()
    await page.getByLabel('Address').fill('wss://other.example.com/ws')
    await page.getByRole('button', { name: 'Connect' }).click()
    assert.equal(await page.getByRole('alert').getByRole('link').getAttribute('href'), 'https://other.example.com/')
    await page.getByLabel('Address').fill(`127.0.0.1:${server.port}`)
    await page.getByLabel('Token').fill(TOKEN)
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('button', { name: 'Get an approval code' }).click()
    const code = await page.getByLabel('Approval code').textContent()
    await page.getByText(`hermes-mobile pairing approve ${code}`).waitFor()
    await server.cli('pairing', 'approve', code!)
    await reads(page, 'You said: Hello!') // the earlier message arrived
    assert.equal(await page.locator('.mine').count(), 1)
    // The token is nowhere that a script of another page, or a log, could see.
    assert.equal(await page.evaluate((token) => JSON.stringify({ ...localStorage }).includes(token) || document.cookie.includes(token), TOKEN), false)
    // The owner revokes the approval, and the page says so.
    const { id } = await page.evaluate(() => JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string })
    await server.cli('devices', 'revoke', id)
    await page.getByText('No access').waitFor()
    await page.getByRole('button', { name: 'Pair again' }).waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })

  it("drives the owner's avatar page in a sandboxed frame", async () => {
    const stranger = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html')
      response.end(`<title>avatar</title><body style="background:#fc0"><script>
        window.heard = []
        addEventListener('message', (e) => heard.push(e.data.hermesAvatar + ' ' + e.data.value))
        parent.postMessage({ hermesAvatar: 'ready' }, '*')
        try { parent.document.title; heard.push('reached the page') } catch {}
      </script>`)
    })
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/avatar.html`
    const server = await Server.start({ MOBILE_AVATAR_URL: address })
    try {
      const visitor = await Visitor.come(rig.browser, server)
      const page = await visitor.pair()
      await page.locator('iframe.agent-avatar').waitFor()
      assert.equal(await page.locator('iframe.agent-avatar').getAttribute('sandbox'), 'allow-scripts')
      await say(page, 'hello avatar')
      await reads(page, 'You said: hello avatar')
      const heard = () => page.frames().find((frame) => frame.url() === server.url + 'avatar')!.evaluate(() => (window as unknown as { heard: string[] }).heard)
      await until(async () => (await heard()).includes('speak You said: hello avatar'), 'the avatar speaks')
      const all = await heard()
      assert.ok(all.includes('setState thinking') && all.includes('setState speaking') && !all.includes('reached the page'), all.join())
      assert.deepEqual(await visitor.leave(), [])
      // A page cached for offline use learns of the owner's new setting.
      delete server.env.MOBILE_AVATAR_URL
      await server.down()
      await server.up()
      const later = await Visitor.come(rig.browser, server)
      const kept = await later.pair()
      await kept.evaluate(() => navigator.serviceWorker.ready)
      server.env.MOBILE_AVATAR_URL = address
      await server.down()
      await server.up()
      await kept.reload()
      await online(kept)
      await kept.locator('.agent-avatar').waitFor()
      await until(() => kept.evaluate(async (origin) => {
        const [name] = await caches.keys()
        return (await (await caches.open(name!)).match('./'))?.headers.get('Content-Security-Policy')?.includes(origin)
      }, new URL(address).origin), 'the kept page is renewed')
      await kept.reload()
      await kept.locator('iframe.agent-avatar').waitFor()
      await until(() => kept.frames().some((frame) => frame.url() === server.url + 'avatar'), 'the frame is there')
      await later.context.close()
    } finally {
      await server.end()
      stranger.close()
    }
  })

  on('can be installed', async (server) => {
    const visitor = await Visitor.come(rig.browser, server, PHONE)
    const page = await visitor.open()
    await page.evaluate(() => navigator.serviceWorker.ready)
    const devtools = await visitor.context.newCDPSession(page)
    const { errors, data } = await devtools.send('Page.getAppManifest')
    assert.deepEqual(errors, [])
    for (const icon of (JSON.parse(data!) as { icons: { src: string; sizes: string }[] }).icons) {
      const size = await page.evaluate(async (src) => {
        const image = new Image()
        image.src = src
        await image.decode()
        return `${image.naturalWidth}x${image.naturalHeight}`
      }, icon.src)
      if (icon.sizes !== 'any') assert.equal(size, icon.sizes, icon.src)
    }
    // A test browser is in private mode, which isn't the page's fault.
    const { installabilityErrors } = await devtools.send('Page.getInstallabilityErrors')
    assert.deepEqual(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito'), [])
    assert.deepEqual(await visitor.leave(), [])
  })

  it('offers a new version and lets the user choose when', async () => {
    const folder = join(process.cwd(), '../internal/web/dist')
    let version = 1
    const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.webmanifest': 'application/manifest+json', '.png': 'image/png' }
    const files = createServer((request, response) => {
      const name = request.url === '/' ? '/index.html' : request.url!
      try {
        let content = readFileSync(join(folder, name))
        if (name === '/sw.js') content = Buffer.from(content.toString().replace(/hermes-page [0-9a-f]{16}/, `hermes-page ${version}`))
        response.setHeader('Content-Type', types[extname(name)] ?? 'text/plain')
        response.end(content)
      } catch {
        response.writeHead(404).end()
      }
    })
    await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve))
    const context = await rig.browser.newContext({ locale: 'en-GB' })
    try {
      const page = await context.newPage()
      await page.goto(`http://127.0.0.1:${(files.address() as AddressInfo).port}/`)
      await page.evaluate(() => navigator.serviceWorker.ready)
      await page.reload() // now the worker answers
      version = 2
      await page.reload()
      await page.getByText('A new version of this page is ready.').waitFor()
      const reloaded = page.waitForEvent('load')
      await page.getByRole('button', { name: 'Reload' }).click()
      await reloaded
      await until(async () => (await page.evaluate(() => caches.keys())).join() === 'hermes-page 2', 'only the new version is kept')
    } finally {
      await context.close()
      files.close()
    }
  })

  on("lists the user's other devices beside the conversation", async (server) => {
    const one = await Visitor.come(rig.browser, server)
    const two = await Visitor.come(rig.browser, server)
    await one.pair('Laptop', 'ben')
    const page = await two.pair('Desk', 'ben')
    await page.locator('.devices').getByText('Laptop').waitFor()
    assert.deepEqual(await one.leave(), [])
    assert.deepEqual(await two.leave(), [])
  })
})
