import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { MemoryStore, NoAccessError, open, parsePairingLink, type Config, type Device, type Outgoing } from '../src/index.js'
import { Proxy, type Fault } from './proxy.js'
import { RealServer } from './real.js'
import { Collected, eventually, within } from './wait.js'

const quick = { backoff: { min: 5, max: 40 }, heartbeat: 150, pongTimeout: 10_000, connectTimeout: 10_000, ackTimeout: 2_000 }

async function openAt(url: string, id: string, config: Partial<Config> = {}): Promise<Device> {
  const device = await open({ url, token: RealServer.token, device: { id }, WebSocket, surroundings: false, ...quick, ...config })
  devices.push(device)
  return device
}

const devices: Device[] = []
after(() => Promise.all(devices.map((device) => device.close()))) // a failed test leaves its device open

/** talk sends messages through a bad network, and checks that each gets one reply, in order. */
async function talk(url: string, id: string, count: number, fault?: () => Promise<void>, config: Partial<Config> = {}): Promise<Collected> {
  const device = await openAt(url, id, config)
  const got = new Collected(device)
  const sent: Outgoing[] = []
  for (let n = 0; n < count; n++) {
    sent.push(await device.send(`message ${n}`, { id: `${id}-${n}` }))
    if (n === count >> 1) await fault?.()
  }
  for (const outgoing of sent) await within('a receipt', outgoing.wait())
  await eventually('all answers', () => got.finals().length >= count)
  // One more round trip: duplicates would have come before its reply.
  await (await device.send('/demo twice', { id: id + '-last' })).wait()
  await got.first('message', (message) => message.final && message.text === 'two')
  assert.deepEqual(got.finals(), [...sent.map((_, n) => `You said: message ${n}`), 'one', 'two'])
  const ids = got.of('message').filter((message) => message.final).map((message) => message.id)
  assert.equal(new Set(ids).size, ids.length)
  assert.deepEqual(got.of('receipt').map((receipt) => receipt.id), [...sent.map((o) => o.id), id + '-last'])
  assert.deepEqual(got.of('historyLost'), [])
  await device.close()
  await got.ended
  return got
}

describe('against the real server', { concurrency: 3 }, () => {
  let server: RealServer
  const proxies: Proxy[] = []
  before(async () => {
    server = await RealServer.start({ MOBILE_MAX_MEDIA_BYTES: '8388608' })
  })
  after(async () => {
    proxies.forEach((proxy) => proxy.stop())
    await server.stop()
  })
  const through = async (...faults: Fault[]) => {
    const proxy = await Proxy.start(() => server.port, faults)
    proxies.push(proxy)
    return proxy
  }

  test('connections cut inside frames lose and duplicate nothing', async () => {
    // Upgrade, hello and ready are about 1,500 bytes: the cuts hit the greeting, the frames after it, and in between.
    const faults = [150, 900, 1_300, 1_550, 1_600, 1_700, 1_800, 2_000].map((cutAfter) => ({ cutAfter }))
    const proxy = await through(...faults)
    await talk(proxy.url, 'cut', 24)
    assert.ok(proxy.connections > 6, `${proxy.connections} connections`)
  })

  test('half-open connections are detected and replaced', async () => {
    const faults = [200, 1_000, 1_600, 1_900].map((hangAfter) => ({ hangAfter }))
    const proxy = await through(...faults)
    await talk(proxy.url, 'hang', 8, undefined, { pongTimeout: 150, connectTimeout: 500 })
    assert.ok(proxy.connections > 3, `${proxy.connections} connections`)
  })

  test('a slow network does not count as dead', async () => {
    const proxy = await through({ delay: 40 })
    await talk(proxy.url, 'slow', 4)
    assert.equal(proxy.connections, 1)
  })

  test('a lost ack causes no second message', async () => {
    const cutAt = '"t":"accepted"'
    const proxy = await through({ cutAt }, { cutAt }, {}, {})
    const got = await talk(proxy.url, 'receipt', 3)
    assert.ok(proxy.connections >= 3)
    assert.equal(got.of('receipt')[0]!.duplicate, true)
  })

  test('a reset during an upload', async () => {
    const proxy = await through({ cutAfter: 600_000 }, { cutAfter: 1_500_000 })
    const device = await openAt(proxy.url, 'upload')
    const got = new Collected(device)
    const data = Uint8Array.from({ length: 2_000_000 }, (_, i) => (i * 7) % 251)
    const progress: number[] = []
    const sent = await device.sendFile({ data, name: 'big.bin', caption: 'look', progress: (n) => progress.push(n) })
    await within('the receipt', sent.wait())
    const hash = createHash('sha256').update(data).digest('hex')
    await got.first('message', (message) => message.final)
    assert.deepEqual(got.finals(), [`received document big.bin 2000000 sha256:${hash} text:look`])
    assert.equal(progress.at(-1), data.length)
    assert.ok(progress.some((n, i) => n < (progress[i - 1] ?? 0))) // it started over
    await device.close()
  })

  test('a large file comes by its link, and resumes after a break', async () => {
    const proxy = await through({}, { cutAfter: 3_000_000 }, { cutAfter: 4_000_000 })
    const device = await openAt(proxy.url, 'download')
    const got = new Collected(device)
    await device.send('/demo file 9000000')
    await device.send('/demo file 3500000')
    const large = await got.first('file', (file) => file.size === 9_000_000)
    assert.ok(large.url)
    const data = await within('the file', device.download(large))
    assert.ok(data.length === 9_000_000 && data.every((byte, i) => byte === i % 251))
    assert.ok(proxy.connections >= 4, `${proxy.connections} connections`)
    const small = await got.first('file', (file) => file.size === 3_500_000)
    assert.equal(small.error, undefined)
    assert.ok(small.data!.every((byte, i) => byte === i % 251))
    await device.close()
  })

  test('of two devices with one id the newer stays connected', async () => {
    const proxy = await through()
    const first = await openAt(proxy.url, 'twin')
    await within('online', first.waitOnline())
    const second = await openAt(proxy.url, 'twin')
    await within('online', second.waitOnline())
    await eventually('the first is replaced', () => first.status.state === 'replaced')
    await talk(proxy.url, 'other', 2) // let time pass
    assert.equal(first.status.state, 'replaced')
    assert.equal(second.status.state, 'online')
    assert.equal(proxy.connections, 3)
    first.reconnect()
    await within('online', first.waitOnline())
    await eventually('the second is replaced', () => second.status.state === 'replaced')
    await Promise.all([first.close(), second.close()])
  })

  test('a new run of the app resumes with cursor and queue', async () => {
    const proxy = await through()
    const store = new MemoryStore()
    const one = await openAt(proxy.url, 'life', { store })
    await (await one.send('first')).wait()
    for await (const event of one.events()) if (event.type === 'message' && event.final) break
    proxy.faults[proxy.connections] = { cutAfter: 0 }
    proxy.cut()
    await one.send('kept', { id: 'life-kept' })
    await one.close()
    const two = await openAt(proxy.url, 'life', { store })
    const got = new Collected(two)
    assert.deepEqual(two.pending().map((o) => o.id), ['life-kept'])
    await got.first('message', (message) => message.final)
    assert.deepEqual(got.finals(), ['You said: kept'])
    await two.close()
  })

  test('cards, tools, stops, deliveries and calls', async () => {
    const url = `ws://127.0.0.1:${server.port}/ws`
    const device = await openAt(url, 'all', { tools: true })
    const got = new Collected(device)
    await device.send('/demo approval')
    const card = await got.first('card')
    assert.equal(card.command, 'rm -rf build')
    await (await device.answer(card.id, 'once')).wait()
    assert.equal((await got.first('cardDone')).optionId, 'once')
    await got.first('message', (message) => message.text === 'approval: once')
    await device.send('/demo tool')
    await got.first('tool', (tool) => tool.state === 'done')
    await got.first('message', (message) => message.text === 'tool: done')
    await eventually('that turn is over', () => !device.activity.typing)
    await device.send('/demo slow 600', { id: 'slow' })
    await eventually('it works', () => device.activity.typing)
    await got.first('receipt', (receipt) => receipt.id === 'slow')
    await device.stop()
    assert.equal((await got.first('message', (message) => message.interrupted)).text, 'stopped')
    await device.sendVoice('wav', Buffer.from('RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\0\0\0\0', 'latin1'), 'hi')
    await got.first('message', (message) => message.text.startsWith('received audio voice.wav'))
    await device.send('/demo image')
    const { data } = await got.first('file', (file) => file.kind === 'image')
    assert.equal(Buffer.from(data!).subarray(1, 4).toString(), 'PNG')
    const { devices } = await device.call<{ devices: { id: string; connected: boolean }[] }>('devices.list')
    assert.deepEqual(devices.map((d) => [d.id, d.connected]), [['all', true]])
    assert.ok((await device.ping()) >= 0)

    const sender = await openAt(url, 'sender', { token: RealServer.deliverToken })
    assert.deepEqual(await sender.deliver({ to: 'all', text: 'The backup is done.', requireLive: true }), { queued: false })
    await got.first('message', (message) => message.text === 'The backup is done.')
    await assert.rejects(sender.deliver({ to: 'nobody', text: 'x' }), { code: 'device_offline' })
    await Promise.all([device.close(), sender.close()])
  })

  test('the WebSocket of the platform is the default, and an error names a missing one', async (t) => {
    const scope = globalThis as { WebSocket?: unknown }
    const own = scope.WebSocket
    t.after(() => (scope.WebSocket = own))
    delete scope.WebSocket
    const url = `ws://127.0.0.1:${server.port}`
    await assert.rejects(openAt(url, 'global', { WebSocket: undefined }), /set Config.WebSocket/)
    scope.WebSocket = own ?? WebSocket // Node 20 has none
    const device = await openAt(url, 'global', { WebSocket: undefined })
    const got = new Collected(device)
    await device.send('hi')
    await got.first('message', (message) => message.text === 'You said: hi')
    await device.close()
    await assert.rejects(openAt(url, 'wrong', { token: 'x'.repeat(32) }).then((d) => d.waitOnline()), NoAccessError)
  })

  test('a pairing link gets a device in, and revoking gets it out', async () => {
    const { link } = JSON.parse(await server.command('pair', '--json')) as Record<string, string>
    const { url, pair } = parsePairingLink(link!)!
    const store = new MemoryStore()
    const device = await openAt(url, 'paired', { token: undefined, pair, store })
    await within('online', device.waitOnline())
    assert.match(store.load().token!, /^[0-9a-f]{64}$/)
    await server.command('devices', 'revoke', 'paired')
    await eventually('no access', () => device.status.error instanceof NoAccessError)
    await device.close()
  })

  test('a shared conversation', async () => {
    const url = `ws://127.0.0.1:${server.port}/ws`
    const user = { id: 'anna' }
    const one = await openAt(url, 'share-1', { user })
    await within('online', one.waitOnline()) // the user’s first device may answer at once
    const two = await openAt(url, 'share-2', { user, device: { id: 'share-2', name: 'Tablet' } })
    const [first, second] = [new Collected(one), new Collected(two)]
    await Promise.all([one, two].map((device) => within('online', device.waitOnline())))
    await server.command('devices', 'join', 'share-2', 'share-1')
    await eventually('both share it', () => [one, two].every((d) => d.status.state === 'online' && d.status.capabilities.shared))
    assert.equal(two.status.session, one.status.session)
    const sent = await two.send('/demo approval')
    assert.deepEqual(await first.first('echo'), { type: 'echo', id: sent.id, from: { id: 'share-2', name: 'Tablet' }, text: '/demo approval', replyTo: '' })
    const card = await first.first('card')
    await one.answer(card.id, 'deny')
    assert.equal((await second.first('cardDone')).by?.id, 'share-1')
    await second.first('message', (message) => message.text === 'approval: deny')
    await Promise.all([one.close(), two.close()])
  })
})

test('a server that is killed and comes back', async () => {
  const server = await RealServer.start()
  try {
    const crash = async () => {
      await server.kill()
      await server.start()
    }
    await talk(`ws://127.0.0.1:${server.port}/ws`, 'kill', 8, crash)
  } finally {
    await server.stop()
  }
})

test('without approval there is an approval code', async () => {
  const server = await RealServer.start({ MOBILE_ALLOW_ALL_USERS: '0' })
  try {
    const device = await openAt(`ws://127.0.0.1:${server.port}/ws`, 'stranger')
    const got = new Collected(device)
    await device.send('let me in')
    const code = await eventually('the code', () => /pairing code is ([0-9A-Z]+)/.exec(device.status.pairing)?.[1])
    assert.equal(device.status.approved, false)
    await server.command('pairing', 'approve', code)
    await got.first('message', (message) => message.text === 'You said: let me in')
    assert.equal(device.status.approved, true)
    await device.close()
  } finally {
    await server.stop()
  }
})
