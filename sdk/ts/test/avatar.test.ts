import assert from 'node:assert/strict'
import { test } from 'node:test'
import { avatarFrame, avatarPage, type Avatar } from '../src/avatar.js'
import { Scripted } from './scripted.js'
import { eventually } from './wait.js'

/** A window that receives messages, with their sender and origin. */
class FakeWindow extends EventTarget {
  parent: FakeWindow = this
  hermesAvatar?: Avatar
  readonly targets: string[] = []

  constructor(readonly origin: string) {
    super()
  }

  postMessage(_data: unknown, _target: string): void {
    throw new Error('a window receives messages only from another one')
  }

  /** The window as another one sees it. */
  from(source: FakeWindow): FakeWindow {
    const post = (data: unknown, target: string) => {
      this.targets.push(target)
      this.dispatchEvent(Object.assign(new Event('message'), { data: structuredClone(data), source: source.seenBy(this), origin: source.origin }))
    }
    return Object.assign(Object.create(this) as FakeWindow, { postMessage: post })
  }

  private views = new Map<FakeWindow, FakeWindow>()
  seenBy(other: FakeWindow): FakeWindow {
    if (!this.views.has(other)) this.views.set(other, this.from(other))
    return this.views.get(other)!
  }
}

function setUp(origin?: string, early = false) {
  const host = new FakeWindow('https://app.example.com')
  const page = new FakeWindow(origin ?? 'null')
  page.parent = host.seenBy(page)
  const frame = { contentWindow: page.seenBy(host) }
  const calls: unknown[] = []
  const avatar: Avatar = {
    setState: (state) => calls.push(state), speak: (text) => calls.push('says ' + text), setVolume: (level) => calls.push(level),
  }
  const load = () => avatarPage(avatar, page as never)
  if (early) load()
  const driver = avatarFrame(frame as never, origin, host as never)
  return { host, page, avatar, calls, driver, load }
}

test('a page in a frame follows the host', () => {
  const { page, avatar, calls, driver, load } = setUp()
  driver.setState('thinking')
  driver.speak('too early')
  driver.setVolume(0.5)
  const end = load()
  assert.equal(page.hermesAvatar, avatar)
  assert.deepEqual(calls.splice(0), ['thinking', 'says too early'])
  driver.setState('speaking')
  driver.setState('dancing' as 'idle')
  driver.speak('hello')
  driver.setVolume(7)
  driver.setVolume(NaN)
  assert.deepEqual(calls.splice(0), ['speaking', 'idle', 'says hello', 1, 0])
  end()
  driver.setState('thinking')
  assert.deepEqual(calls, [])
  load() // the page reloads
  assert.deepEqual(calls, ['thinking'])
})

test('the host finds a page that loaded earlier', () => {
  const { calls, driver } = setUp(undefined, true)
  driver.setState('speaking')
  assert.deepEqual(calls, ['idle', 'speaking'])
})

test('messages of strangers are ignored', () => {
  const { host, page, calls, driver, load } = setUp()
  load()
  calls.length = 0
  const stranger = new FakeWindow('https://evil.example.com')
  page.seenBy(stranger).postMessage({ hermesAvatar: 'speak', value: 'gotcha' }, '*')
  host.seenBy(page).postMessage({ hermesAvatar: 'speak', value: 'backwards' }, '*')
  for (const odd of [null, 'speak', { hermesAvatar: 'close' }, { hermesAvatar: 'speak', value: {} }, { hermesAvatar: 'setVolume', value: 'x' }]) {
    page.seenBy(host).postMessage(odd, '*')
  }
  assert.deepEqual(calls, [])
  driver.close()
  host.seenBy(stranger).postMessage({ hermesAvatar: 'ready' }, '*')
  assert.deepEqual(calls, [])
})

test('a frame that keeps its origin must match it', () => {
  const { page, calls, driver, load } = setUp('https://agent.example.com')
  load()
  driver.speak('for you')
  assert.ok(page.targets.every((target) => target === 'https://agent.example.com'))
  assert.deepEqual(calls, ['idle', 'says for you'])
})

test('it follows a device', () => {
  const { calls, driver, load } = setUp()
  load()
  calls.length = 0
  let tell!: (event: { type: 'activity'; typing: boolean; avatar: string }) => void
  let off = 0
  const end = driver.follow({ on: (_, listener) => ((tell = listener), () => off++) })
  tell({ type: 'activity', typing: true, avatar: 'thinking' })
  tell({ type: 'activity', typing: false, avatar: '' })
  end()
  assert.deepEqual(calls, ['thinking', 'idle'])
  assert.equal(off, 1)
})

test('it follows a device of the SDK', async () => {
  const server = await Scripted.start()
  try {
    const { calls, driver, load } = setUp()
    load()
    const device = await server.open()
    const end = driver.follow(device)
    const peer = await server.peer()
    await peer.welcome()
    peer.send({ t: 'avatar', state: 'thinking' })
    await eventually('the avatar thinks', () => calls.at(-1) === 'thinking')
    end()
  } finally {
    await server.stop()
  }
})

test('a page in a web view works without a parent', () => {
  const page = new FakeWindow('https://agent.example.com')
  const avatar = { setState() {}, speak() {}, setVolume() {} }
  avatarPage(avatar, page as never)()
  assert.equal(page.hermesAvatar, avatar)
})
