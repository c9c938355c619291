import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { ClosedError, FrameError, MemoryStore, NoAccessError, open, ReplacedError, type Config } from '../src/index.js'
import { readyFrame, finalMessage, Scripted } from './scripted.js'
import { Collected, eventually, within } from './wait.js'

describe('connecting', () => {
  let server: Scripted
  beforeEach(async () => {
    server = await Scripted.start()
  })
  afterEach(() => server.stop())

  test('hello names the device and its features, ready becomes the status', async () => {
    const device = await server.open({ device: { id: 'tel-1', name: 'Phone', app: 'demo/1' }, user: { id: 'anna' }, tools: true })
    assert.equal(device.status.state, 'connecting')
    const peer = await server.peer()
    assert.deepEqual(await peer.welcome({ avatar_url: 'https://a.example.com/', agent: 'away', protocol: 1 }), {
      t: 'hello', token: 'secret', device: { id: 'tel-1', name: 'Phone', app: 'demo/1' }, user: { id: 'anna' }, accept: ['delta', 'tail', 'tool'],
    })
    await within('online', device.waitOnline())
    const { state, session, server: name, avatarUrl, agent, approved, capabilities, error } = device.status
    assert.deepEqual({ state, session, name, avatarUrl, agent, approved, error }, {
      state: 'online', session: 'mobile:tel-1', name: 'scripted/1', avatarUrl: 'https://a.example.com/', agent: 'away', approved: true, error: undefined,
    })
    assert.equal(capabilities.max_parts, 2048)
    peer.send({ t: 'capabilities', capabilities: { text: true }, agent: 'online' })
    await eventually('the new capabilities', () => device.status.agent === 'online' && !device.status.capabilities.media)
  })

  test('a reference server works without optional fields', async () => {
    const device = await server.open({ delta: false })
    const peer = await server.peer()
    assert.deepEqual((await peer.next('hello')).accept, [])
    peer.send({ t: 'ready', session: 's', capabilities: { text: true } })
    await within('online', device.waitOnline())
    assert.equal(device.status.approved, true)
    assert.equal(device.status.agent, 'online')
    const sent = await device.send('hi')
    assert.equal((await peer.next()).text, 'hi')
    assert.equal((await within('the end', sent.wait())).unconfirmed, true)
  })

  test('the pairing code is used once, then the own token', async () => {
    const store = new MemoryStore()
    const device = await server.open({ token: undefined, pair: '7KQ4-M2XD', store })
    const first = await server.peer()
    const hello = await first.welcome({ token: 'own' })
    assert.equal(hello.pair, '7KQ4-M2XD')
    assert.equal('token' in hello, false)
    await within('online', device.waitOnline())
    assert.equal(store.load().token, 'own')
    first.socket.terminate()
    const second = await (await server.peer()).welcome()
    assert.equal(second.token, 'own')
    assert.equal('pair' in second, false)
  })

  test('a new token is acknowledged once it is stored, and used in the next hello', async () => {
    let failing = true
    const store = new MemoryStore()
    store.setToken('old')
    const keep = store.setToken.bind(store)
    store.setToken = (token) => {
      if (failing) throw new Error('the disk is full')
      keep(token)
    }
    const device = await server.open({ token: undefined, store })
    const first = await server.peer()
    assert.equal((await first.welcome({ token: 'lost' })).token, 'old')
    await device.send('one')
    await first.next('text')
    assert.deepEqual(first.got.filter((frame) => frame.t === 'ack'), [], 'acknowledged a token that the store rejected')
    failing = false
    first.socket.terminate()
    const second = await server.peer()
    await second.welcome({ token: 'new' })
    await eventually('the acknowledgement', () => second.got.some((frame) => frame.t === 'ack' && frame.token === true && frame.seq === 0))
    assert.equal(store.load().token, 'new')
  })

  test('the pairing code is used when the server rejects the stored token', async () => {
    const store = new MemoryStore()
    store.setToken('old')
    const device = await server.open({ token: undefined, pair: '7KQ4-M2XD', store })
    const first = await server.peer()
    assert.equal((await first.next('hello')).token, 'old')
    first.send({ t: 'error', code: 'auth_failed', message: 'the token is wrong' })
    first.socket.close(1008)
    assert.equal((await (await server.peer()).welcome({ token: 'new' })).pair, '7KQ4-M2XD')
    await within('online', device.waitOnline())
    assert.equal(store.load().token, 'new')
  })

  test('1008 ends the attempts, and the error says why', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.next('hello')
    peer.send({ t: 'error', code: 'auth_failed', message: 'the token is wrong' })
    peer.socket.close(1008)
    const refused = await device.waitOnline().catch((error: unknown) => error)
    assert.ok(refused instanceof NoAccessError)
    assert.equal(refused.code, 'auth_failed')
    assert.equal(refused.message, 'the token is wrong')
    assert.equal(device.status.state, 'noAccess')
    assert.equal(device.status.error, refused)
    device.reconnect()
    assert.equal(device.status.state, 'connecting')
    await (await server.peer()).welcome()
    await within('online', device.waitOnline())
    assert.equal(server.peers.length, 2)
  })

  test('the error frame counts when the close frame was lost', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.next('hello')
    peer.send({ t: 'error', code: 'forbidden', message: 'this device belongs to another token' })
    await eventually('the words are out', () => peer.socket.bufferedAmount === 0)
    peer.socket.terminate()
    await assert.rejects(within('the end', device.waitOnline()), NoAccessError)
  })

  test('a live connection reports that the device was revoked', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome()
    await device.waitOnline()
    peer.socket.close(1008, 'revoked by the owner')
    await eventually('no access', () => device.status.state === 'noAccess')
    assert.equal(device.status.error?.message, 'revoked by the owner')
  })

  test('4409 ends the attempts until reconnect', async () => {
    const window = new EventTarget()
    const device = await server.open({ surroundings: { window } })
    const peer = await server.peer()
    await peer.welcome()
    await device.waitOnline()
    peer.socket.close(4409)
    await eventually('replaced', () => device.status.state === 'replaced')
    for (const sign of ['online', 'pageshow', 'pagehide', 'offline']) window.dispatchEvent(new Event(sign))
    assert.equal(device.status.state, 'replaced')
    await assert.rejects(device.waitOnline(), ReplacedError)
    device.reconnect()
    await (await server.peer()).welcome()
    await within('online', device.waitOnline())
    assert.equal(server.peers.length, 2)
  })

  test('retry_after is obeyed', async () => {
    const device = await server.open({ patience: 0 })
    const peer = await server.peer()
    await peer.next('hello')
    peer.send({ t: 'error', code: 'rate_limited', message: 'too often', retry_after: 60 })
    peer.socket.close(1013)
    await eventually('waiting', () => device.status.state === 'waiting')
    assert.ok(device.status.until > Date.now() + 50_000)
    assert.ok(device.status.error instanceof FrameError)
  })

  test('the wait between attempts grows and is jittered', async () => {
    const bounds: number[] = []
    let port = ''
    class Nowhere extends WebSocket {
      constructor() {
        super('ws://127.0.0.1:1/') // no server listens there
        port = this.url
      }
    }
    const device = await server.open({ WebSocket: Nowhere, backoff: { min: 2, max: 8 } })
    device.on('status', ({ status }) => {
      if (status.state === 'waiting') bounds.push(status.until - status.since)
    })
    await eventually('attempts', () => bounds.length >= 6)
    assert.ok(port.includes('127.0.0.1'))
    const most = (n: number) => Math.min(8, 2 * 2 ** n)
    assert.ok(bounds.every((wait, n) => wait >= most(n) / 2 - 1 && wait <= most(n) + 1), String(bounds))
    assert.equal(device.status.error, undefined) // not an error yet
  })

  test('failing to connect becomes an error after the patience', async () => {
    const device = await server.open({ patience: 1, connectTimeout: 20 })
    await eventually('an error', () => device.status.state === 'waiting' && device.status.error)
    await assert.rejects(within('the signal', device.waitOnline({ signal: AbortSignal.timeout(1) })), { name: 'TimeoutError' })
  })

  test('a rejected upgrade is final where the platform tells', async () => {
    const device = await server.open({ url: server.address + '/elsewhere' })
    const refused = await within('the end', device.waitOnline().catch((error: unknown) => error))
    assert.ok(refused instanceof NoAccessError)
    assert.ok(refused.status >= 400)
  })

  test('after a drop the device resumes at its cursor', async () => {
    const store = new MemoryStore()
    const device = await server.open({ store })
    const got = new Collected(device)
    const first = await server.peer()
    await first.welcome({ resume: { epoch: 'e1', from: 4, to: 5, lost: false } })
    first.send(finalMessage('r1', 'one', 4))
    assert.equal((await first.next('ack')).seq, 4)
    assert.deepEqual(store.load().cursor, { epoch: 'e1', seq: 4 })
    first.send(finalMessage('r2', 'two', 5))
    first.socket.terminate()
    const second = await server.peer()
    const { resume } = await second.welcome({ resume: { epoch: 'e1', from: 5, to: 5, lost: false } })
    assert.equal(resume.epoch, 'e1')
    second.send(finalMessage('r2', 'two', 5), finalMessage('r3', 'three', 6))
    await got.first('message', (message) => message.text === 'three')
    assert.deepEqual(got.finals(), ['one', 'two', 'three'])
  })

  test('a new epoch of the outbox is reported', async () => {
    const store = new MemoryStore()
    store.setCursor({ epoch: 'e0', seq: 40 })
    const device = await server.open({ store })
    const got = new Collected(device)
    const peer = await server.peer()
    assert.deepEqual((await peer.welcome({ resume: { epoch: 'e1', from: 7, to: 7, lost: true } })).resume, { epoch: 'e0', seq: 40 })
    peer.send(finalMessage('r1', 'one', 7))
    await got.first('historyLost')
    assert.equal((await peer.next('ack')).seq, 7)
    assert.deepEqual(store.load().cursor, { epoch: 'e1', seq: 7 })
  })

  test('close acknowledges handled events, and ends waiting calls', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    peer.send(finalMessage('r1', 'one', 1))
    await got.first('message')
    const sent = await device.send('nobody answers')
    await device.ping({ signal: AbortSignal.timeout(1) }).catch(() => {})
    const asked = device.call('devices.list')
    const ends = Promise.allSettled([sent.wait(), asked, device.close()])
    const [receipt, call] = await within('the end', ends)
    assert.ok(receipt.status === 'rejected' && receipt.reason instanceof ClosedError)
    assert.ok(call.status === 'rejected' && call.reason instanceof Error)
    await within('the end of the loop', got.ended)
    await eventually('the server sees it', () => peer.closed !== undefined)
    assert.equal(peer.closed, 1000)
    assert.equal(peer.got.filter((f) => f.t === 'ack').at(-1)?.seq, 1)
    assert.equal(device.status.state, 'closed')
    await assert.rejects(device.send('late'), ClosedError)
    await assert.rejects(device.waitOnline(), ClosedError)
    await assert.rejects(device.next(), ClosedError)
    await device.close() // twice is harmless
  })

  test('a second ready changes nothing', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome()
    await device.waitOnline()
    peer.send(readyFrame({ session: 'other' }), { t: 'pong', id: 'x' })
    const sent = await device.send('x')
    peer.send({ t: 'accepted', id: (await peer.next()).id })
    await sent.wait()
    assert.equal(device.status.session, 'mobile:tel-1')
  })
})

test('an invalid configuration throws at once', async () => {
  const good: Config = { url: 'wss://a.example.com', device: { id: 'tel-1' }, WebSocket }
  for (const bad of [
    { url: 'agent' }, { url: 'ftp://a.example.com' }, { url: 'wss://a.example.com/ws?token=abc' }, { url: 'wss://me:pw@a.example.com' }, { url: '' },
    { device: { id: '' } }, { device: { id: 'a b' } }, { device: { id: 'x'.repeat(129) } }, { user: { id: 'ä' } },
  ]) {
    const error = await open({ ...good, ...bad }).then(() => undefined, (e: unknown) => e)
    assert.ok(error instanceof TypeError, JSON.stringify(bad))
    assert.ok(!/abc|pw/.test(error.message), error.message)
  }
})
