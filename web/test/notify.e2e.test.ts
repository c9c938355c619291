import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { DESKTOP, launch, noBrowser, online, PHONE, reads, say, Server, until, Visitor } from './rig'
import { PushService, Subscriber } from './pushService'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// One after another, each in its own browser: shown notifications were seen to vanish when another
// visit ended.
describe('notifications', { skip: noBrowser, concurrency: 1 }, () => {
  let server: Server
  let service: PushService
  let browser: Browser
  before(async () => {
    service = await PushService.start()
    server = await Server.start({ MOBILE_PUSH_CONTACT: 'mailto:owner@example.com', MOBILE_PUSH_HOSTS: PushService.host, MOBILE_PUSH_ACTIONS: 'yes' })
  })
  beforeEach(async () => {
    browser = await launch()
  })
  afterEach(() => browser?.close())
  after(async () => {
    await server?.end()
    await service?.end()
  })

  const device = (page: Page) => page.evaluate(() => (JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string }).id)
  const settings = (page: Page) => page.getByRole('button', { name: 'Settings' }).click()
  const state = (page: Page, name: string) => page.locator(`[data-notify=${name}]`).waitFor()
  const deliver = (to: string, text: string) => server.cli('deliver', '--to', to, '--text', text)

  /** subscribed visits with notifications switched on. */
  async function subscribed(name: string, options: BrowserContextOptions = DESKTOP, user = ''): Promise<{ visitor: Visitor; phone: Subscriber; page: Page; id: string }> {
    const visitor = await Visitor.come(browser, server, options)
    const phone = await Subscriber.come(visitor, service)
    await phone.permit()
    const page = await visitor.pair(name, user)
    await settings(page)
    await page.getByLabel('Notify me').check()
    await state(page, 'on')
    await phone.attach(page)
    return { visitor, phone, page, id: await device(page) }
  }

  /** away leaves the page and waits until the server has noticed. */
  async function away(page: Page): Promise<void> {
    const left = await device(page)
    await page.goto('about:blank')
    const connected = async () => (JSON.parse(await server.cli('devices', 'list', '--json')) as { id: string; connected: boolean }[]).some(({ id, connected }) => id === left && connected)
    await until(async () => !(await connected()), 'the device is away')
  }

  it('count what waits and open it', async () => {
    const { visitor, phone, page, id } = await subscribed('Pocket', PHONE)
    await away(page)
    await deliver(id, 'the first words')
    const first = await phone.receive()
    assert.deepEqual([first.type, first.count, first.title, first.body], ['message', 1, undefined, undefined])
    await phone.shows('1 new message')
    await deliver(id, 'the second words')
    const second = await phone.receive()
    assert.equal(second.count, 2)
    await phone.shows('2 new messages') // one, not two
    assert.equal((await phone.shown())[0]!.title, 'Hermes')
    for (const odd of ['', 'no JSON', '{"type":"of the future"}', '{"type":"wake"}']) {
      await phone.deliver(odd)
      await phone.shows('2 new messages', 'You have something new')
      assert.equal(await phone.press('You have something new'), server.url)
      await phone.shows('2 new messages')
    }

    const opened = await phone.press('2 new messages')
    assert.equal(opened, `${server.url}#show=${second.id}`)
    await phone.deliver(JSON.stringify(second)) // the click closed it
    await phone.shows('2 new messages')
    await page.goto(opened)
    await page.locator(`[data-id="${second.id}"].highlighted`).waitFor()
    assert.equal(new URL(page.url()).hash, '')
    await phone.shows() // what was read is no longer shown, before the server says so
    assert.equal((await phone.receive()).type, 'withdraw')
    await phone.shows()

    // A notification is chosen while the page is open.
    await page.evaluate(() => (document.activeElement as HTMLElement).blur())
    await phone.show('late', { ...first, actions: [] })
    assert.equal(await phone.press('late'), '')
    await page.locator(`[data-id="${first.ids[0]}"].highlighted`).waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })

  it('are all listed by the browser, however many arrive at once', async () => {
    const { visitor, phone, page } = await subscribed('Crowded', PHONE)
    await away(page)
    const lost = await (await phone.worker()).evaluate(async () => {
      const scope = self as unknown as { registration: ServiceWorkerRegistration; PushEvent: new (type: string, init: object) => Event & { waitUntil: (done: Promise<unknown>) => void } }
      const push = async (data: object) => {
        const event = new scope.PushEvent('push', { data: JSON.stringify(data) })
        let work: Promise<unknown> = Promise.resolve()
        event.waitUntil = (done) => (work = done)
        self.dispatchEvent(event)
        await work
      }
      let lost = 0
      for (let round = 0; round < 20; round++) {
        let over = false
        const shows = Promise.all([push({ type: 'message', ids: ['new'], count: 1 }), push({ type: 'card', id: 'card', ids: ['card'], count: 1 })]).finally(() => (over = true))
        while (!over) await push({ type: 'withdraw', ids: ['read elsewhere'], count: 0 })
        await shows
        const shown = await scope.registration.getNotifications()
        if (shown.length !== 2) lost++
        shown.forEach((one) => one.close())
      }
      return lost
    })
    assert.equal(lost, 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('stay away while the user looks at the page, except tests', async () => {
    const { visitor, phone, page } = await subscribed('Looking')
    await page.bringToFront()
    await phone.deliver('{"type":"message","ids":["x"],"count":1}')
    await phone.deliver('{"type":"test","ids":[],"count":0}')
    await phone.shows('Notifications work.')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('let the user answer an approval once', async () => {
    const desk = await Visitor.come(browser, server, DESKTOP)
    const work = await desk.pair('Desk', 'eva')
    const { visitor, phone, page, id } = await subscribed('Pocket', PHONE, 'eva')
    await page.getByLabel('Show text in notifications').check()
    await until(() => phone.called('push.register').at(-1)?.content === true, 'the server knows that words may be shown')
    await server.cli('devices', 'join', id, await device(work))
    await online(page)
    // A device that joined a conversation can't answer in its first minute there.
    await until(async () => !(JSON.parse(await server.cli('devices', 'list', '--json')) as { id: string; answers_at?: string }[]).find((one) => one.id === id)!.answers_at, 'it may answer')
    await away(page)
    const ask = async (command = '/demo approval') => {
      await say(work, command)
      await work.locator('[data-card]:not(.finished)').getByRole('button', { name: 'Allow once' }).first().waitFor()
      for (;;) {
        const notice = await phone.receive()
        if (notice.type === 'card') return notice
      }
    }
    const asked = async () => (await phone.shown()).find(({ tag }) => tag.startsWith('card'))!
    const notice = await ask()
    await until(asked, 'the question is shown')
    const question = await asked()
    assert.equal(question.body, notice.body)
    assert.deepEqual([question.title, question.buttons, question.stays, question.tag], ['Hermes', ['Allow', 'Deny'], true, 'card ' + notice.id])
    await phone.press(notice.body!, 'once')
    await reads(work, 'approval: once')
    await work.getByText('Answered by Pocket: Allow once').waitFor()
    await until(async () => (await asked())?.body === `Allowed.\n${notice.body}`, 'it says that it was allowed')
    assert.deepEqual((await asked()).buttons, [])

    const denied = await ask()
    await until(async () => (await phone.shown()).some(({ tag }) => tag === 'card ' + denied.id), 'the second question is shown')
    // A press that fails to get through can be repeated.
    await visitor.context.route('**/push/action', (route) => route.abort())
    await phone.press(denied.body!, 'deny')
    await until(async () => (await phone.shown()).some(({ body, buttons }) => body === `Couldn't reach the server. Try again, or open the page to see whether your answer arrived.\n${denied.body}` && buttons.length === 2), 'it says that the server was not reached')
    assert.equal(await work.locator('[data-card]:not(.finished)').count(), 1)
    await visitor.context.unroute('**/push/action')
    await phone.press("Couldn't reach the server", 'deny')
    await reads(work, 'approval: deny')
    await until(async () => (await phone.shown()).some(({ body }) => body.startsWith('Denied.')), 'it says that it was denied')

    // Answered on another device: the notification closes, and an earlier press is told the result.
    const elsewhere = await ask()
    await until(async () => (await phone.shown()).some(({ tag, stays }) => tag === 'card ' + elsewhere.id && stays), 'the third question is shown')
    await work.locator('[data-card]:not(.finished)').getByRole('button', { name: 'Deny' }).click()
    await work.locator(`[data-card="${elsewhere.id}"]`).getByText('Answered: Deny').waitFor()
    await phone.press(elsewhere.body!, 'once')
    await until(async () => (await phone.shown()).some(({ tag, body }) => tag === 'card ' + elsewhere.id && body.startsWith('Already answered. Denied.')), 'it says that it was decided')
    const last = await ask()
    await until(async () => (await phone.shown()).some(({ tag, stays }) => tag === 'card ' + last.id && stays), 'the fourth question is shown')
    await work.locator('[data-card]:not(.finished)').getByRole('button', { name: 'Deny' }).click()
    while ((await phone.shown()).some(({ tag }) => tag === 'card ' + last.id)) await phone.receive() // until the withdrawal is among them

    // A card that a notification can't show whole can only be denied there.
    const odd = await ask('/demo odd')
    assert.deepEqual(odd.actions?.map(({ id }) => id), ['deny'])
    await until(async () => (await phone.shown()).some(({ tag, stays }) => tag === 'card ' + odd.id && stays), 'the question is shown')
    const shown = (await phone.shown()).find(({ tag }) => tag === 'card ' + odd.id)!
    assert.deepEqual([shown.body, shown.buttons], [odd.body + '\nOpen to read all of it and answer.', ['Deny']])
    await phone.press(odd.body!, 'deny')
    await work.locator(`[data-card="${odd.id}"]`).getByText('Answered by Pocket: Deny').waitFor()
    assert.deepEqual(await visitor.leave(), [])
    assert.deepEqual(await desk.leave(), [])
  })

  it('are configured and tested in the settings', async () => {
    const { visitor, phone, page } = await subscribed('Chooser', PHONE)
    const register = () => phone.called('push.register').at(-1)!
    assert.deepEqual([register().kind, register().endpoint, register().content, register().quiet], ['webpush', phone.endpoint, false, undefined])
    await page.getByLabel('Quiet hours').check()
    await page.getByLabel('From').fill('23:30')
    const tz = await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone)
    await until(() => JSON.stringify(register().quiet) === JSON.stringify({ from: '23:30', to: '07:00', tz }), 'the server knows the quiet hours')
    await state(page, 'on')
    await page.getByRole('button', { name: 'Send a test notification' }).click()
    await page.locator('[data-tested=sent]').waitFor()
    assert.equal((await phone.receive()).type, 'test')
    await page.locator('[data-tested=arrived]').waitFor()
    await phone.shows('Notifications work.')
    service.refusing.set(phone.endpoint, 413)
    await page.getByRole('button', { name: 'Send a test notification' }).click()
    await page.getByText('The test failed: The notification is too large for the push service. (HTTP 413)').waitFor()
    service.refusing.clear()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe)
      const findings = await page.evaluate(async () => (await (window as unknown as { axe: { run(o: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run({ resultTypes: ['violations'] })).violations.map(({ id, nodes }) => id + nodes.map(({ html }) => html).join()))
      assert.deepEqual(findings, [], colorScheme)
    }

    // The page repeats it with each connection and keeps it over a reload.
    const before = phone.called('push.register').length
    await page.reload()
    await online(page)
    await until(() => phone.called('push.register').length > before, 'it is registered again')
    assert.equal((register().quiet as { from: string }).from, '23:30')

    // The browser replaced the subscription.
    const other = service.subscribe()
    await page.evaluate((made) => localStorage.setItem('test.subscription', JSON.stringify({ ...JSON.parse(localStorage.getItem('test.subscription')!), made })), other)
    await (await phone.worker()).evaluate(async () => {
      const scope = self as unknown as { registration: { pushManager: object } }
      let key: unknown
      Object.defineProperty(Object.getPrototypeOf(scope.registration.pushManager), 'subscribe', { value: async (options: { applicationServerKey: unknown }) => (key = options.applicationServerKey) })
      let work: Promise<unknown> = Promise.resolve()
      const change = Object.assign(new Event('pushsubscriptionchange'), { waitUntil: (done: Promise<unknown>) => (work = done) })
      self.dispatchEvent(change)
      await work
      if (typeof key !== 'string' || key.length !== 87) throw new Error('not the key of the server: ' + String(key))
    })
    await until(() => register().endpoint === other.endpoint, 'the new one is registered')
    assert.deepEqual(phone.called('push.unregister'), [{ endpoint: phone.endpoint }])

    await settings(page)
    await page.getByLabel('Notify me').uncheck()
    await state(page, 'off')
    assert.deepEqual(phone.called('push.unregister').at(-1), { endpoint: other.endpoint })
    await phone.shows()
    assert.deepEqual(await visitor.leave(), [])
  })

  it('end with the sign-out', async () => {
    const { visitor, phone, page } = await subscribed('Leaving')
    await phone.deliver('{"type":"test","ids":[],"count":0}')
    await phone.shows('Notifications work.')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('group', { name: 'Sign out' }).getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Connect' }).waitFor()
    await until(() => phone.called('push.unregister').length === 1, 'the server forgets it')
    await phone.shows()
    await until(async () => (await page.evaluate(async () => [(await indexedDB.databases()).length, localStorage.getItem('test.subscription'), Object.keys(localStorage).filter((key) => key.startsWith('hermes.notify')).length].join())) === '0,,0', 'nothing is kept')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('are unavailable without support by browser and server', async () => {
    const visitor = await Visitor.come(browser, server) // no permission
    const page = await visitor.pair('Blocked')
    await settings(page)
    await state(page, 'denied')
    await page.getByText('Your browser blocks notifications').waitFor()
    assert.equal(await page.getByLabel('Notify me').isDisabled(), true)
    // The user allows notifications in the browser's settings.
    await (await Subscriber.come(visitor, service)).permit()
    await state(page, 'off')
    assert.equal(await page.getByLabel('Notify me').isEnabled(), true)
    assert.deepEqual(await visitor.leave(), [])

    const without = await Server.start()
    try {
      const guest = await Visitor.come(browser, without)
      await (await Subscriber.come(guest, service)).permit()
      const there = await guest.pair('Guest')
      await settings(there)
      await state(there, 'serverOff')
      assert.equal(await there.getByLabel('Notify me').isDisabled(), true)
      assert.deepEqual(await guest.leave(), [])
    } finally {
      await without.end()
    }
  })

  it('are in Russian', async () => {
    const visitor = await Visitor.come(browser, server, { ...PHONE, locale: 'ru-RU' })
    const phone = await Subscriber.come(visitor, service)
    await phone.permit()
    const page = await visitor.open(await server.pairingLink())
    await page.getByRole('button', { name: 'Подключиться' }).click()
    await online(page)
    await page.getByRole('button', { name: 'Настройки' }).click()
    await page.getByLabel('Уведомлять, когда страница не открыта').check()
    await state(page, 'on')
    await page.getByText('Включены.').waitFor()
    await phone.attach(page)
    const id = await device(page)
    await away(page)
    await deliver(id, 'раз')
    await phone.receive()
    await phone.shows('1 новое сообщение')
    await phone.deliver('{"type":"message","ids":["a","b","c","d","e"],"count":5}')
    await phone.shows('5 новых сообщений')
    assert.deepEqual(await visitor.leave(), [])
  })
})

describe('a device that is revoked while its page is open', { skip: noBrowser }, () => {
  it('says so, stays disconnected, keeps its history, and can be paired again', async () => {
    const service = await PushService.start()
    const server = await Server.start({ MOBILE_PUSH_CONTACT: 'mailto:owner@example.com', MOBILE_PUSH_HOSTS: PushService.host })
    const browser = await launch()
    try {
      const visitor = await Visitor.come(browser, server, PHONE)
      const phone = await Subscriber.come(visitor, service)
      await phone.permit()
      const page = await visitor.pair('Lost')
      let sockets = 0
      page.on('websocket', () => sockets++)
      await say(page, 'before it was lost')
      await reads(page, 'You said: before it was lost')
      await page.getByRole('button', { name: 'Settings' }).click()
      await page.getByLabel('Notify me').check()
      await page.locator('[data-notify=on]').waitFor()
      await page.keyboard.press('Escape')
      const id = await page.evaluate(() => (JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string }).id)
      await server.cli('devices', 'revoke', id)
      await page.locator('[data-state=noAccess]').waitFor()
      await page.getByText('The server rejected this device.').waitFor()
      await reads(page, 'You said: before it was lost')
      await until(() => page.evaluate(() => localStorage.getItem('test.subscription') === null), 'the browser takes no more notifications')
      // Events that make a disconnected page reconnect don't affect this one.
      const tried = sockets
      await page.evaluate(() => ['online', 'pageshow', 'focus'].forEach((type) => dispatchEvent(new Event(type))))
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
      await page.locator('[data-state=noAccess]').waitFor()
      assert.equal(sockets, tried)
      await page.reload()
      await page.locator('[data-state=noAccess]').waitFor()
      await reads(page, 'You said: before it was lost')

      const registered = phone.called('push.register').length
      await page.getByRole('button', { name: 'Pair again' }).click()
      await page.getByLabel('Pairing link or code').fill(await server.pairingLink())
      await page.getByRole('button', { name: 'Connect' }).click()
      await online(page)
      await say(page, 'here again')
      await reads(page, 'You said: here again')
      await until(() => phone.called('push.register').length > registered, 'it wants to be notified as before')
      await page.getByRole('button', { name: 'Settings' }).click()
      await page.locator('[data-notify=on]').waitFor()
      assert.deepEqual(await visitor.leave(), [])
    } finally {
      await browser.close()
      await server.end()
      await service.end()
    }
  })
})
