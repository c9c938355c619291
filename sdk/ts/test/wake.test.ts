import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { finalMessage, Scripted } from './scripted.js'
import { Collected, eventually, within } from './wait.js'

/** A page whose events the test dispatches. */
class Page {
  readonly window = new EventTarget()
  readonly document = Object.assign(new EventTarget(), { visibilityState: 'visible' })

  show(): void {
    this.document.visibilityState = 'visible'
    this.document.dispatchEvent(new Event('visibilitychange'))
  }

  hide(): void {
    this.document.visibilityState = 'hidden'
    this.document.dispatchEvent(new Event('visibilitychange'))
  }
}

describe('a page that comes back', () => {
  let server: Scripted
  let page: Page
  beforeEach(async () => {
    server = await Scripted.start()
    page = new Page()
  })
  afterEach(() => server.stop())

  test('a page that is left closes its connection, and resumes when it is shown again', async () => {
    const device = await server.open({ surroundings: page })
    const got = new Collected(device)
    const first = await server.peer()
    await first.welcome()
    first.send(finalMessage('r1', 'one', 1))
    await got.first('message')
    const sent = await device.send('kept')
    await first.next()
    page.window.dispatchEvent(new Event('pagehide'))
    await eventually('it is closed', () => first.closed === 1000)
    await eventually('it waits', () => device.status.state === 'waiting')
    assert.equal(device.status.until, 0)
    assert.equal(device.status.error, undefined)
    page.window.dispatchEvent(new Event('pageshow'))
    assert.equal(device.status.state, 'connecting')
    const second = await server.peer()
    assert.deepEqual((await second.welcome()).resume, { epoch: 'e1', seq: 1 })
    assert.equal((await second.next()).id, sent.id)
    assert.ok(!got.of('status').some(({ status }) => status.error))
  })

  test('a page that is shown before its connection closed connects, too', async () => {
    const device = await server.open({ surroundings: page })
    await (await server.peer()).welcome()
    await device.waitOnline()
    page.window.dispatchEvent(new Event('pagehide'))
    page.window.dispatchEvent(new Event('pageshow'))
    await (await server.peer()).welcome()
    await within('online', device.waitOnline())
  })

  for (const [name, wake] of [
    ['the page is shown', (p: Page) => p.show()],
    ['the network is back', (p: Page) => p.window.dispatchEvent(new Event('online'))],
    ['the page is resumed', (p: Page) => p.document.dispatchEvent(new Event('resume'))],
  ] as const) {
    test(`${name}: the device connects at once, without an error meanwhile`, async () => {
      const device = await server.open({ surroundings: page, backoff: { min: 3_600_000, max: 3_600_000 } })
      const errors: unknown[] = []
      device.on('status', ({ status }) => errors.push(status.error))
      const first = await server.peer()
      await first.welcome()
      await device.waitOnline()
      page.hide()
      first.socket.terminate()
      await eventually('it waits', () => device.status.state === 'waiting')
      wake(page)
      await (await server.peer()).welcome()
      await within('online', device.waitOnline())
      assert.ok(errors.length > 0 && errors.every((error) => error === undefined))
    })
  }

  test('a live connection is checked', async () => {
    const device = await server.open({ surroundings: page })
    const peer = await server.peer()
    await peer.welcome()
    await device.waitOnline()
    for (const sign of ['online', 'offline', 'pageshow']) {
      page.window.dispatchEvent(new Event(sign))
      await peer.next('ping')
    }
    page.show()
    await peer.next('ping')
    page.hide()
    device.suspend()
    await eventually('it waits', () => device.status.state === 'waiting')
    assert.equal(peer.got.filter((f) => f.t === 'ping').length, 4)
  })

  test('a dead connection is replaced soon', async () => {
    const device = await server.open({ surroundings: page, pongTimeout: 20 })
    await (await server.peer()).welcome()
    await device.waitOnline()
    page.show() // and the pong is missing
    await (await server.peer()).welcome()
    await within('online', device.waitOnline())
    assert.equal(device.status.error, undefined)
  })

  test('close removes the listeners', async () => {
    const device = await server.open({ surroundings: page })
    await (await server.peer()).welcome()
    await device.waitOnline()
    await device.close()
    page.show()
    page.window.dispatchEvent(new Event('pageshow'))
    assert.equal(device.status.state, 'closed')
  })
})
