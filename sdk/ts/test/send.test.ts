import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { CallError, FrameError, LinkLostError, MemoryStore, UnsupportedError, type Store } from '../src/index.js'
import { finalMessage, Scripted, type Peer } from './scripted.js'
import { Collected, eventually, within } from './wait.js'

describe('sending', () => {
  let server: Scripted
  beforeEach(async () => {
    server = await Scripted.start()
  })
  afterEach(() => server.stop())

  const accept = (peer: Peer, id: string) => peer.send({ t: 'accepted', id, duplicate: false, queued: false })

  test('messages go one after the other, and again under their id until the ack', async () => {
    const store = new MemoryStore()
    const device = await server.open({ store })
    const one = await device.send('one')
    const two = await device.send('two', { id: 'mine', replyTo: 'r9', steer: true })
    assert.equal(await device.send('two', { id: 'mine' }), two)
    assert.equal(device.status.unconfirmed, 2)
    const first = await server.peer()
    await first.welcome()
    const sent = await first.next()
    assert.deepEqual(sent, { t: 'text', id: one.id, text: 'one' })
    first.socket.terminate()
    const second = await server.peer()
    await second.welcome()
    assert.deepEqual(await second.next(), sent)
    assert.equal(second.got.length, 2) // the other one waits for its turn
    second.send({ t: 'accepted', id: one.id, duplicate: true, queued: true })
    assert.deepEqual(await one.wait(), { id: one.id, duplicate: true, queued: true, unconfirmed: false })
    assert.deepEqual(await second.next(), { t: 'text', id: 'mine', text: 'two', reply_to: 'r9', steer: true })
    assert.deepEqual(device.pending(), [two])
    accept(second, 'mine')
    await two.wait()
    assert.deepEqual(store.load().queue, [])
    assert.equal(device.status.unconfirmed, 0)
  })

  test('without an ack on a live connection the message goes again', async () => {
    const device = await server.open({ ackTimeout: 20 })
    const peer = await server.peer()
    await peer.welcome()
    const sent = await device.send('one')
    assert.deepEqual(await peer.next(), await peer.next())
    accept(peer, sent.id)
    await sent.wait()
  })

  test('setting the clock back delays nothing', async (t) => {
    const device = await server.open({ ackTimeout: 200 })
    const peer = await server.peer()
    await peer.welcome()
    const sent = await device.send('one')
    await peer.next()
    const { now } = Date
    t.mock.method(Date, 'now', () => now() - 3_600_000)
    await eventually('it goes again', () => peer.got.filter((f) => f.id === sent.id).length > 1)
    accept(peer, sent.id)
    await sent.wait()
  })

  test('messages of an earlier run go first, in order', async () => {
    const store = new MemoryStore()
    store.add({ id: 'a', frame: '{"t":"text","id":"a","text":"A"}' })
    store.add({ id: 'damaged', frame: '{"t":' })
    store.add({ id: 'f', frame: '{"t":"later","id":"f"}' })
    store.add({ id: 'b', frame: '{"t":"text","id":"b","text":"B"}' })
    const device = await server.open({ store })
    assert.deepEqual(device.pending().map((o) => o.id), ['a', 'f', 'b'])
    await device.send('C', { id: 'c' })
    const peer = await server.peer()
    await peer.welcome()
    const order: string[] = []
    while (order.length < 4) {
      const { id } = await peer.next()
      order.push(id as string)
      accept(peer, id as string)
    }
    assert.deepEqual(order, ['f', 'a', 'b', 'c']) // an unknown frame goes on its own
    await eventually('all gone', () => store.load().queue!.length === 1)
  })

  test('an error is final, or a wait helps', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const bad = await device.send('bad')
    const good = await device.send('good')
    peer.send({ t: 'error', code: 'bad_frame', message: 'no', ref: (await peer.next()).id })
    const refused = await bad.wait().catch((error: unknown) => error)
    assert.ok(refused instanceof FrameError)
    assert.equal(refused.code, 'bad_frame')
    peer.send({ t: 'error', code: 'internal', message: 'the disk is full', ref: (await peer.next()).id })
    assert.equal((await peer.next()).id, good.id)
    accept(peer, good.id)
    await good.wait()
    await got.first('receipt', (receipt) => receipt.error === refused)
    await got.first('receipt', (receipt) => receipt.id === good.id)
    assert.equal(got.of('problem').length, 0)
  })

  test('a device without approval gets its code, and sends again after the approval', async () => {
    const device = await server.open()
    const sent = await device.send('hello')
    await device.answer('card', 'once')
    const peer = await server.peer()
    await peer.welcome({ approved: false })
    assert.equal((await peer.next()).text, 'hello')
    peer.send({ t: 'message', id: 'p', text: 'Its pairing code is 7KQ4M2XD', chunk: { index: 0, total: 1 }, final: true, reply_to: sent.id })
    await eventually('the code', () => device.status.pairing.includes('7KQ4M2XD'))
    assert.equal(peer.got.filter((f) => f.t === 'prompt').length, 0)
    peer.send({ t: 'approved' })
    const again = [await peer.next(), await peer.next()]
    assert.deepEqual(again.map((f) => f.t).sort(), ['prompt', 'text'])
    assert.equal(device.status.approved, true)
    assert.equal(device.status.pairing, '')
  })

  test('the end of a card acknowledges its answer', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const card = { t: 'prompt', id: 'c1', kind: 'clarify', text: 'Which?', options: [{ id: 'c0', label: 'CSV', style: '' }], odd: true, session: 's', timeout_seconds: 9, seq: 3 }
    peer.send(card)
    const shown = await got.first('card')
    assert.deepEqual(shown, {
      type: 'card', id: 'c1', kind: 'clarify', text: 'Which?', command: '', description: '', odd: true, options: card.options, timeoutSeconds: 9, expiresAt: '', again: false,
    })
    const answer = await device.answer('c1', 'other', 'a spreadsheet')
    const { id, ...frame } = await peer.next()
    assert.deepEqual(frame, { t: 'prompt', prompt_id: 'c1', option_id: 'other', text: 'a spreadsheet' })
    assert.equal(id, answer.id)
    peer.send({ t: 'prompt_done', prompt_id: 'c1', id: 'c1', option_id: 'other', expired: false, seq: 4, by: { id: 'tab-1', name: 'Tablet' } })
    await answer.wait()
    assert.deepEqual(await got.first('cardDone'), { type: 'cardDone', id: 'c1', optionId: 'other', expired: false, by: { id: 'tab-1', name: 'Tablet' } })
    peer.send(card, finalMessage('r', 'x', 5)) // a replay of a card that ended
    await got.first('message')
    assert.equal(got.of('card').length, 1)
    await assert.rejects(device.answer('c1', ''), FrameError)
  })

  test('a failed store is reported, and rejects the message', async () => {
    const broken: Store = {
      load: () => Promise.resolve({}), setCursor: () => Promise.reject(new Error('full')), setToken: () => {}, remove: () => {},
      add: () => {
        throw new Error('no space')
      },
    }
    const device = await server.open({ store: broken })
    const got = new Collected(device)
    await assert.rejects(device.send('x'), /no space/)
    assert.equal(device.pending().length, 0)
    const peer = await server.peer()
    await peer.welcome()
    peer.send(finalMessage('r1', 'one', 1))
    assert.match((await got.first('problem')).error.message, /full/)
    await got.first('message') // the device keeps running
    await device.close() // which would send a due ack
    await eventually('the end', () => peer.closed)
    assert.equal(peer.got.filter((f) => f.t === 'ack').length, 0)
  })

  test('an invalid message throws at once', async () => {
    const device = await server.open()
    await assert.rejects(device.send('  \n'), { code: 'bad_frame' })
    await assert.rejects(device.send('ä'.repeat(600_000)), { code: 'too_big' })
    await assert.rejects(device.send('x', { id: 'a\u0000b' }), { code: 'bad_frame' })
    await assert.rejects(device.send('x', { id: 'x'.repeat(129) }), { code: 'bad_frame' })
    await assert.rejects(device.sendVoice('flac' as 'wav', new Uint8Array(1)), { code: 'bad_frame' })
    await assert.rejects(device.sendVoice('wav', new Uint8Array(0)), { code: 'bad_frame' })
    await assert.rejects(device.sendVoice('wav', new Uint8Array((8 << 20) + 1)), { code: 'too_big' })
    await device.send('x'.repeat(1 << 20))
    assert.equal(device.pending().length, 1)
  })

  test('an unsupported feature throws once the capabilities are known', async () => {
    const device = await server.open()
    await device.sendVoice('wav', new Uint8Array(4)) // the capabilities are unknown yet
    const peer = await server.peer()
    await peer.welcome({ capabilities: { accepted: true } })
    await device.waitOnline()
    await assert.rejects(device.send('x'), UnsupportedError)
    await assert.rejects(device.sendVoice('wav', new Uint8Array(4)), UnsupportedError)
    await assert.rejects(device.sendFile({ data: new Uint8Array(4) }), UnsupportedError)
    await assert.rejects(device.call('devices.list'), UnsupportedError)
    await assert.rejects(device.stop(), UnsupportedError)
    await assert.rejects(device.deliver({ to: 'tel-2', text: 'x' }), UnsupportedError)
  })

  test('a frame that is too large for the server is not sent again', async () => {
    const device = await server.open()
    const voice = await device.sendVoice('wav', new Uint8Array([1, 2, 3]), 'words')
    const text = await device.send('after')
    const first = await server.peer()
    await first.welcome()
    assert.deepEqual(await first.next(), { t: 'audio', id: voice.id, format: 'wav', data: 'AQID', text: 'words' })
    first.socket.close(1009)
    await assert.rejects(within('the end', voice.wait()), { code: 'too_big' })
    const second = await server.peer()
    await second.welcome()
    assert.equal((await second.next()).id, text.id)
  })

  test('calls, pings, stops and deliveries', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome()
    const call = device.call<{ n: number }>('devices.list', { a: 1 })
    const { id, ...asked } = await peer.next()
    assert.deepEqual(asked, { t: 'call', method: 'devices.list', params: { a: 1 } })
    peer.send({ t: 'result', id, result: { n: 7 } })
    assert.deepEqual(await call, { n: 7 })

    const wrong = device.call('devices.list')
    peer.send({ t: 'result', id: (await peer.next()).id, error: { code: 'not_found', message: 'no' } })
    const error = await wrong.catch((e: unknown) => e)
    assert.ok(error instanceof CallError && error.code === 'not_found')

    const ping = device.ping()
    peer.send({ t: 'pong', id: (await peer.next('ping')).id })
    assert.ok((await ping) >= 0)

    await device.stop()
    assert.ok((await peer.next('stop')).id)

    const delivery = device.deliver({ to: 'home', text: 'done', data: new Uint8Array([1]), filename: 'a.txt', requireLive: true, id: 'd1' })
    assert.deepEqual(await peer.next(), { t: 'deliver', id: 'd1', to: 'home', text: 'done', data: 'AQ==', filename: 'a.txt', require_live: true })
    peer.send({ t: 'delivered', id: 'd1', queued: true })
    assert.deepEqual(await delivery, { queued: true })

    const lost = device.call('devices.list').catch((e: unknown) => e)
    const again = device.deliver({ to: 'home', text: 'x', id: 'd2' })
    await peer.next()
    await peer.next()
    peer.socket.terminate()
    assert.ok((await lost) instanceof LinkLostError)
    const second = await server.peer()
    await second.welcome()
    assert.equal((await second.next()).id, 'd2') // repeated under its id
    second.send({ t: 'error', code: 'device_offline', message: 'away', ref: 'd2' })
    await assert.rejects(again, { code: 'device_offline' })
    const gone = device.call('devices.list', {}, { signal: AbortSignal.timeout(1) })
    await assert.rejects(gone, { name: 'TimeoutError' })
  })
})
