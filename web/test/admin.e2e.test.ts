import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { adminLink, DESKTOP, noBrowser, online, PHONE, reads, say, Server, serverRig, until, Visitor } from './rig'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const ADMIN = '8'.repeat(64)
const PLACES = ['Overview', 'Devices', 'Users', 'Deliveries', 'Doctor', 'Tokens']

interface Finding {
  id: string
  nodes: { target: string[]; failureSummary: string }[]
}

describe('the admin UI', { skip: noBrowser, concurrency: 1 }, () => {
  const rig = serverRig({ MOBILE_ADMIN_TOKEN: ADMIN })

  async function accessible(page: Page, screen: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe)
      const findings = await page.evaluate(async () => {
        const { violations } = await (window as unknown as { axe: { run(options: object): Promise<{ violations: Finding[] }> } }).axe.run({ resultTypes: ['violations'] })
        return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ') + ' ' + node.failureSummary.replace(/\s+/g, ' ')).join(' | '))
      })
      assert.deepEqual(findings, [], `${screen} in ${colorScheme}`)
      const wide = await page.evaluate(() => document.querySelector('.admin')?.scrollWidth ?? 0)
      assert.ok(wide <= (page.viewportSize()?.width ?? 0), `${screen} is ${wide} wide`)
    }
  }

  const go = (page: Page, place: string) => page.getByRole('navigation').getByRole('link', { name: place }).click()
  const row = (page: Page, text: string | RegExp) => page.locator('.admin-row').filter({ hasText: text })
  const confirm = (page: Page, button: string) => page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click()

  it('renames and revokes a connected phone', async () => {
    const phone = await rig.visit(PHONE)
    const chat = await phone.pair('Kitchen')
    await say(chat, 'hello')
    await reads(chat, 'You said: hello')
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server))
    await go(page, 'Devices')
    const device = row(page, 'Kitchen').filter({ hasText: 'online' })
    await device.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Hall')
    await page.keyboard.press('Enter')
    await row(page, 'Hall').filter({ hasText: 'online' }).waitFor()
    assert.equal(await row(page, 'Kitchen').count(), 0)

    await row(page, 'Hall').getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await say(chat, 'still here')
    await reads(chat, 'You said: still here')
    await row(page, 'Hall').getByRole('button', { name: 'Revoke' }).click()
    await confirm(page, 'Revoke')
    await chat.getByText('No access').first().waitFor()
    await row(page, 'Hall').filter({ hasText: 'revoked' }).waitFor()
    await row(page, 'Hall').getByRole('button', { name: 'Unbind' }).click()
    await confirm(page, 'Unbind')
    await until(async () => (await row(page, 'Hall').filter({ hasText: 'revoked' }).count()) === 0, 'the device is not revoked any more')
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('isolates names and marks invisible characters in them', async () => {
    const phone = await rig.visit(PHONE)
    await phone.pair('Gar\u202eden\u200b \u05d0\u05d1')
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server) + '#/devices')
    await row(page, 'Garden').locator('strong > bdi').first().waitFor()
    assert.deepEqual(await row(page, 'Garden').locator('strong > bdi').allInnerTexts(), ['Garden \u05d0\u05d1'])
    await go(page, 'Users')
    await page.locator('.admin-row strong > bdi').filter({ hasText: 'Garden' }).first().waitFor()
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('changes the rights of a phone', async () => {
    const phone = await rig.visit(PHONE)
    const chat = await phone.pair('Wall')
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server) + '#/devices')
    const write = row(page, 'Wall').getByRole('group', { name: 'Rights of Wall' }).getByRole('switch', { name: 'Write and send files' })
    assert.equal(await write.isChecked(), true)
    await write.focus()
    await page.keyboard.press('Space')
    await chat.getByText('The owner has made this device read-only.').waitFor()
    await until(async () => !(await write.isChecked()), 'the switch is off')
    await row(page, 'Wall').getByRole('switch', { name: 'Answer cards' }).click()
    await until(async () => /may not write or answer/.test(await rig.server.cli('devices', 'list')), 'the device may not answer')
    await accessible(page, 'rights')
    await page.reload()
    await write.waitFor()
    assert.equal(await write.isChecked(), false)
    await write.click()
    await say(chat, 'thanks')
    await reads(chat, 'You said: thanks')
    await until(() => write.isChecked(), 'the switch is on')
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('approves and revokes a user', async () => {
    const phone = await rig.visit(PHONE)
    const { token } = JSON.parse(await rig.server.cli('token', 'add', 'asking', '--json')) as { token: string }
    const chat = await phone.open()
    await chat.getByRole('button', { name: 'Address and token' }).click()
    await chat.getByLabel('Token').fill(token)
    await chat.getByLabel('Device name').fill('Visitor')
    await chat.getByRole('button', { name: 'Connect' }).click()
    await chat.getByRole('button', { name: 'Get an approval code' }).click()
    await chat.getByLabel('Approval code').waitFor()
    const owner = await rig.visit(PHONE)
    const page = await owner.open(await adminLink(rig.server) + '#/people')
    await accessible(page, 'a request')
    const user = (await page.locator('.admin-row').filter({ has: page.getByRole('button', { name: /^Approve / }) }).locator('code').textContent())!
    await page.getByRole('button', { name: 'Approve Visitor' }).click()
    await reads(chat, 'You said: Hello!')
    await page.getByText('Nobody is waiting. Phones that ask for approval appear here.').waitFor()
    await row(page, user).getByRole('button', { name: /^Revoke / }).click()
    await confirm(page, 'Revoke')
    await chat.getByText('No access').first().waitFor()
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('pairs a phone with a QR code', async () => {
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server) + '#/people')
    await page.getByRole('button', { name: 'Create pairing code' }).click()
    await page.getByRole('img', { name: 'QR code of the pairing link' }).waitFor()
    await accessible(page, 'a code')
    const link = (await page.locator('.command code').textContent())!
    const phone = await rig.visit(PHONE)
    const chat = await phone.open(link)
    await chat.getByLabel('Device name').fill('Scanned')
    await chat.getByRole('button', { name: 'Connect' }).click()
    await online(chat)
    await page.getByText(/^Scanned is paired and belongs to /).waitFor()

    // A code for an existing user names that user, and so does the device it lets in.
    const user = (await rig.server.cli('devices', 'list')).match(/^\S+ +Scanned +(\S+) /m)![1]!
    await page.getByLabel('The device belongs to').selectOption(user)
    await page.getByRole('switch', { name: /^Trusted device/ }).click()
    await page.getByLabel("The device's token expires").selectOption({ label: 'After 30 days' })
    await page.getByRole('button', { name: 'Create another code' }).click()
    await page.getByText(/^For a device of /).waitFor()
    await accessible(page, 'a code for a user')
    const second = await rig.visit()
    const desk = await second.open((await page.locator('.command code').textContent())!)
    await desk.getByLabel('Device name').fill('Second')
    await desk.getByRole('button', { name: 'Connect' }).click()
    await online(desk)
    await page.getByText(/^Second is paired and belongs to /).waitFor()
    await chat.locator('[data-device-news]').filter({ hasText: 'You have a new device: Second.' }).waitFor()
    assert.match(await rig.server.cli('devices', 'list'), new RegExp(`Second +${user} `))
    await second.leave()
    await go(page, 'Devices')
    await row(page, 'Scanned').first().waitFor()

    // One of the devices becomes the home channel.
    await row(page, 'Home channel').getByRole('button', { name: 'Choose' }).click()
    await page.getByRole('dialog').getByLabel('Device').selectOption({ label: (await page.getByRole('dialog').locator('option', { hasText: 'Scanned' }).textContent())! })
    await confirm(page, 'Choose')
    await page.locator('.admin-home').filter({ hasText: 'Scanned' }).waitFor()
    await rig.server.cli('deliver', '--to', 'home', '--id', 'news-1', '--text', 'News')
    await reads(chat, 'News')
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.locator('.admin-home').filter({ hasText: 'none' }).waitFor()

    // Deliveries are listed, and filters narrow the list.
    await go(page, 'Deliveries')
    await row(page, 'news-1').filter({ hasText: 'to Scanned' }).filter({ hasText: /delivered|seen/ }).waitFor()
    await accessible(page, 'deliveries')
    await page.getByRole('combobox', { name: /^State/ }).selectOption('expired')
    await page.getByText('No deliveries match. Choose another filter, or send one: hermes-mobile deliver.').waitFor()
    await page.getByRole('combobox', { name: /^State/ }).selectOption('')
    await page.getByRole('combobox', { name: /^Device/ }).selectOption({ label: 'Scanned' })
    await row(page, 'news-1').waitFor()
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('lets a device join and leave another conversation', async () => {
    const [one, two] = [await rig.visit(PHONE), await rig.visit()]
    await one.pair('Pocket', 'anna')
    await two.pair('Desk', 'anna')
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server) + '#/devices')
    await row(page, 'Desk').getByRole('button', { name: 'Join a conversation' }).click()
    await confirm(page, 'Join a conversation')
    await row(page, 'Shares the conversation of Pocket.').getByRole('button', { name: 'Leave the conversation' }).click()
    await until(async () => (await row(page, 'Shares the conversation').count()) === 0, 'it has left')
    assert.deepEqual(await owner.leave(), [])
    await Promise.all([one.leave(), two.leave()])
  })

  it('creates a token, shows it once, and removes it', async () => {
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server) + '#/tokens')
    await page.getByLabel('New app token').fill('tablet')
    await page.getByRole('button', { name: 'Add' }).click()
    const secret = (await page.locator('[data-secret]').textContent())!
    assert.match(secret, /^[0-9a-f]{64}$/)
    await row(page, 'Created on this server').filter({ hasText: 'tablet' }).waitFor()
    await accessible(page, 'a new token')
    const phone = await rig.visit(PHONE)
    const chat = await phone.open()
    await chat.getByRole('button', { name: 'Address and token' }).click()
    await chat.getByLabel('Token').fill(secret)
    await chat.getByRole('button', { name: 'Connect' }).click()
    await chat.getByRole('button', { name: 'Get an approval code' }).waitFor()
    await page.reload()
    await row(page, 'tablet').waitFor()
    assert.ok(!(await page.content()).includes(secret))
    await page.getByRole('button', { name: 'Remove tablet' }).click()
    await confirm(page, 'Remove')
    await until(async () => (await page.getByRole('button', { name: 'Remove tablet' }).count()) === 0, 'the token is gone')
    await chat.getByText('No access').first().waitFor()
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it("replaces a phone's own token", async () => {
    const phone = await rig.visit(PHONE)
    const chat = await phone.pair('Larder')
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server) + '#/devices')
    await row(page, 'Larder').filter({ hasText: 'its own token' }).getByRole('button', { name: 'Replace token' }).click()
    await confirm(page, 'Replace token')
    await go(page, 'Audit log')
    await page.getByText('Device received its new token').first().waitFor()
    await say(chat, 'still here')
    await reads(chat, 'You said: still here')
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('lists issues with their fixes, and checks again', async () => {
    const ill = await Server.start({ MOBILE_PUBLIC_URL: 'https://127.0.0.1:1' })
    const owner = await Visitor.come(rig.browser, ill)
    const page = await owner.open(await adminLink(ill))
    await go(page, 'Doctor')
    const finding = row(page, '127.0.0.1:1')
    await finding.getByText('What to do:').first().waitFor()
    await accessible(page, 'the doctor')
    const again = page.waitForResponse((response) => response.url().endsWith('/admin/api/doctor'))
    await page.getByRole('button', { name: 'Check again' }).click()
    assert.equal((await again).status(), 200)
    await finding.first().waitFor()
    // Other sections show the number of issues too.
    await page.getByRole('navigation').locator('.admin-count').waitFor()
    await go(page, 'Overview')
    await page.getByRole('main').getByRole('link', { name: '1 issue needs your attention' }).waitFor()
    assert.equal(await page.getByText('No issues found.').count(), 0)
    assert.deepEqual(await owner.leave(), [])
    await ill.end()
  })

  it('has no axe violations in any section, on a phone and a desktop, in both languages', async () => {
    for (const device of [PHONE, DESKTOP]) {
      const owner = await rig.visit(device)
      const page = await owner.open(await adminLink(rig.server))
      for (const place of PLACES) {
        await go(page, place)
        await page.getByRole('heading', { level: 2, name: place }).waitFor()
        await page.locator('[aria-busy=true]').waitFor({ state: 'detached' })
        await accessible(page, place)
      }
      await go(page, 'Devices')
      await page.getByRole('button', { name: 'Rename' }).first().click()
      await page.getByRole('dialog').waitFor()
      await accessible(page, 'a dialog')
      await page.keyboard.press('Escape')
      await page.getByLabel('Language').selectOption('ru')
      await page.getByRole('heading', { level: 1, name: 'Панель администратора' }).waitFor()
      await page.getByRole('navigation').getByRole('link', { name: 'Обзор' }).click()
      await accessible(page, 'Russian')
      assert.deepEqual(await owner.leave(), [])
    }
  })

  it('shows the agent and its gateways', async () => {
    const owner = await rig.visit()
    // The demo agent has no gateways, so the answer gets some of a relay agent.
    await owner.context.route('**/admin/api/overview', async (route) => {
      const response = await route.fetch()
      const all = (await response.json()) as { status: Record<string, unknown> }
      const since = new Date(Date.now() - 3 * 3600_000).toISOString()
      const gateway = { Seen: true, Since: since, From: '192.0.2.5', Version: '0.22', Turns: 2, Waiting: 1, Wedges: 0 }
      all.status.relay = { Gateways: [{ ...gateway, ID: 'gw-1', Name: 'Home', Online: true }, { ...gateway, ID: 'gw-2', Name: '', Online: false, Wedges: 3 }], Refusals: 0 }
      await route.fulfill({ response, json: all })
    })
    const page = await owner.open(await adminLink(rig.server))
    await row(page, 'Gateway Home').filter({ hasText: 'online since 3 hours ago' }).filter({ hasText: 'running turns: 2' }).waitFor()
    await row(page, 'Gateway gw-2').filter({ hasText: 'offline since 3 hours ago' }).filter({ hasText: 'stalls: 3' }).waitFor()
    await page.locator('.admin-numbers div').filter({ hasText: 'Gateways online' }).filter({ hasText: '1 / 2' }).waitFor()
    await accessible(page, 'gateways')
    assert.deepEqual(await owner.leave(), [])
  })

  it('is never cached by the browser or the service worker', async () => {
    const owner = await rig.visit()
    const page = await owner.pair('Same browser')
    await page.evaluate(() => navigator.serviceWorker.ready)
    await page.goto(await adminLink(rig.server))
    await page.getByRole('heading', { level: 1, name: 'Admin UI' }).waitFor()
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    const kept = await page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys()).map((request) => request.url)))).flat())
    assert.deepEqual(kept.filter((url) => url.includes('admin')), [])
    assert.deepEqual(await owner.leave(), [])
  })

  it('says that data may be out of date while the server is down, and asks for a new link afterwards', async () => {
    const gone = await Server.start()
    const owner = await Visitor.come(rig.browser, gone)
    const page = await owner.open(await adminLink(gone))
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    await gone.down('SIGKILL')
    await page.getByText('This page may be out of date').waitFor()
    await gone.up() // a restart ends all logins
    await page.getByText('Run this command on the server').waitFor()
    assert.equal(await page.getByRole('heading', { level: 2 }).count(), 0)
    await page.goto(await adminLink(gone))
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    assert.deepEqual((await owner.leave()).filter((line) => !/status of 401/.test(line)), [])
    await gone.end()
  })

  it('works by keyboard alone', async () => {
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server))
    await page.getByRole('navigation').getByRole('link', { name: 'Tokens' }).focus()
    await page.keyboard.press('Enter')
    await page.getByLabel('New app token').focus()
    await page.keyboard.type('typed')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Remove typed' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Remove typed')
    assert.deepEqual(await owner.leave(), [])
  })

  it('opens with a one-time link and leaves no key behind', async () => {
    const owner = await rig.visit(PHONE)
    // A visitor without a link sees only how to get one.
    const bare = await owner.open(rig.server.url + 'admin')
    await bare.getByText('hermes-mobile admin', { exact: true }).waitFor()
    assert.equal(await bare.getByLabel('Admin token').count(), 0)
    await accessible(bare, 'the way in')
    const link = await adminLink(rig.server)
    const page = await owner.open(link + '#/devices')
    await page.getByRole('heading', { level: 2, name: 'Devices' }).waitFor()
    assert.equal(page.url(), rig.server.url + 'admin#/devices')
    assert.equal(await page.evaluate(() => document.cookie), '')
    assert.equal(await page.evaluate(() => document.referrer), '')
    await page.goBack()
    assert.equal(page.url(), 'about:blank')
    // The waiting page continues when it becomes visible, and the owner can open another link.
    await bare.reload()
    await bare.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    await bare.goto(link)
    await bare.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()

    const stranger = await rig.visit()
    const late = await stranger.open(link)
    await late.getByText('This link was already used or is older than two minutes').waitFor()
    await late.getByText('hermes-mobile admin', { exact: true }).waitFor()
    assert.equal(late.url(), rig.server.url + 'admin')
    await accessible(late, 'a link that is spent')
    await late.getByLabel('Language').selectOption('ru')
    await late.getByText('Эта ссылка уже использована').waitFor()
    await late.goto(await adminLink(rig.server))
    await late.getByRole('navigation').waitFor()
    assert.equal(await late.getByText('Эта ссылка уже использована').count(), 0)
    assert.deepEqual(await owner.leave(), [])
    assert.deepEqual(await stranger.leave(), [])
  })

  it('gives other ports of this host nothing for the cookie alone', async () => {
    const seen: string[] = []
    const preview = createHttpServer((request, response) => {
      seen.push(request.headers.cookie ?? '')
      response.end('a preview')
    })
    await new Promise<void>((resolve) => preview.listen(0, '127.0.0.1', resolve))
    preview.unref() // a failing test does not wait for it
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server))
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    const other = await owner.context.newPage()
    await other.goto(`http://127.0.0.1:${(preview.address() as { port: number }).port}/`)
    const cookie = seen.find((line) => line.includes('hm_admin_'))
    assert.ok(cookie, 'the browser sends the cookie to other ports: this is what the secret of the page is for')
    const asks = (path: string, headers: Record<string, string>) => fetch(rig.server.url + 'admin/api' + path, { headers: { Cookie: cookie, ...headers } })
    assert.equal((await asks('/overview', { 'X-Hermes-Mobile-Admin': '1' })).status, 401)
    assert.equal(((await (await asks('/session', { 'X-Hermes-Mobile-Admin': '1' })).json()) as { access: string }).access, 'link')
    const secret = (await page.evaluate(() => localStorage.getItem('hermes.admin')))!
    assert.equal((await asks('/overview', { 'X-Hermes-Mobile-Admin': secret })).status, 200)
    // Another tab of the same page is logged in at once. After a logout no tab is.
    const tab = await owner.context.newPage()
    await tab.goto(rig.server.url + 'admin')
    await tab.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    await tab.getByRole('button', { name: 'Log out' }).click()
    await page.getByText('Run this command on the server').waitFor()
    assert.equal(await page.evaluate(() => localStorage.getItem('hermes.admin')), null)
    assert.equal((await asks('/overview', { 'X-Hermes-Mobile-Admin': secret })).status, 401)
    await owner.context.close()
    await new Promise((resolve) => preview.close(resolve))
  })

  it('rejects other pages of this host despite the cookie', async () => {
    const neighbour = await Server.start()
    const owner = await rig.visit()
    const page = await owner.open(await adminLink(rig.server))
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    // Another port is another origin but the same site, so SameSite cookies are sent.
    const other = await owner.context.newPage()
    await other.goto(neighbour.url + 'healthz')
    const got = await other.evaluate(async (url) => {
      const results: string[] = []
      const tries: [string, RequestInit][] = [
        ['admin/api/overview', { credentials: 'include', headers: { 'X-Hermes-Mobile-Admin': '1' } }], ['metrics', { credentials: 'include' }], ['readyz', { credentials: 'include' }],
        ['admin/api/pair', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }],
      ]
      for (const [path, init] of tries) results.push(await fetch(url + path, init).then(async (r) => `${r.type} ${(await r.text()).length}`, () => 'refused'))
      return results
    }, rig.server.url)
    assert.deepEqual(got, ['refused', 'refused', 'refused', 'refused']) // CORP blocks even the opaque answer
    await owner.context.close()
    await neighbour.end()
  })

  it('requires the admin token from other machines', async () => {
    const proxied = { 'X-Forwarded-For': '192.0.2.1' }
    const stranger = await rig.visit({ ...PHONE, extraHTTPHeaders: proxied })
    const refused = await stranger.open(rig.server.url + 'admin')
    await refused.getByText('works over HTTPS only').waitFor()
    await stranger.leave()

    const plain = await Server.start({ MOBILE_ADMIN_TOKEN: ADMIN, MOBILE_PUBLIC_URL: 'http://agent.example' })
    const owner = await Visitor.come(rig.browser, plain, { ...PHONE, extraHTTPHeaders: proxied })
    const page = await owner.open(plain.url + 'admin')
    await page.getByText('cross the network unencrypted').waitFor()
    await accessible(page, 'the login')
    await page.getByLabel('Admin token').fill('wrong-wrong-wrong')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByText('Wrong admin token.').waitFor()
    await page.getByLabel('Admin token').fill(ADMIN)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    assert.equal(await page.evaluate(() => document.cookie), '')
    await page.reload()
    await page.getByRole('heading', { level: 2, name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Admin token').waitFor()
    await page.getByText('Or run this command on the server').waitFor()
    // A rejected login answers 401, which the browser logs as an error.
    assert.deepEqual((await owner.leave()).filter((line) => !/status of 401/.test(line)), [])
    await plain.end()
  })

  it('is hidden from other machines without an admin token', async () => {
    const bare = await Server.start()
    const stranger = await Visitor.come(rig.browser, bare, { extraHTTPHeaders: { 'X-Forwarded-For': '192.0.2.1' } })
    const page = await stranger.context.newPage()
    const answer = await page.goto(bare.url + 'admin')
    assert.equal(answer?.status(), 404)
    await stranger.leave()
    await bare.end()
  })
})
