import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { MemoryStore, type Event } from '../src/index.js'
import { Position } from '../src/position.js'
import { capabilities, finalMessage, Scripted, type Frame, type Peer } from './scripted.js'
import { Collected, eventually, within } from './wait.js'

describe('receiving', () => {
  let server: Scripted
  beforeEach(async () => {
    server = await Scripted.start()
  })
  afterEach(() => server.stop())

  test('additions count UTF-16 units, and a misfit waits for a whole text', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const step = (at: number, append: string) => ({ t: 'message', id: 'r1', edit: true, at, append, final: false })
    const texts = () => got.of('message').map((message) => message.text)
    peer.send({ t: 'message', id: 'r1', text: '👩‍💻', edit: true, chunk: { index: 0, total: 1 }, final: false })
    await eventually('the first step', () => texts().includes('👩‍💻'))
    peer.send(step(5, ' writes'))
    await eventually('the addition', () => texts().at(-1) === '👩‍💻 writes')
    peer.send(step(99, 'lost'), { t: 'avatar', state: 'speaking' })
    await got.first('activity', (activity) => activity.avatar === 'speaking')
    assert.equal(texts().at(-1), '👩‍💻 writes')
    peer.send({ t: 'message', id: 'r1', text: 'all of it', edit: true, chunk: { index: 0, total: 1 }, final: true, reply_to: 'm1', seq: 1 })
    const last = await got.first('message', (message) => message.final)
    assert.deepEqual(last, { type: 'message', id: 'r1', text: 'all of it', final: true, interrupted: false, replyTo: 'm1', source: '', job: '' })
  })

  test('a final message may be an addition; a misfit comes whole over the next connection', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const whole = (id: string, text: string) => ({ t: 'message', id, text, edit: true, chunk: { index: 0, total: 1 }, final: false })
    const last = (id: string, at: number, append: string, seq: number) => ({ t: 'message', id, at, append, final: true, seq })
    peer.send(whole('r1', '👩‍💻'), { t: 'message', id: 'r1', append: ' writes' }, last('r1', 12, ' on', 1))
    peer.send(whole('r2', 'all'), last('r2', 3, '', 2), whole('r3', 'one or two'), last('r3', 3, ' two', 3))
    await got.first('message', (message) => message.final && message.id === 'r3')
    assert.deepEqual(got.finals(), ['👩‍💻 writes on', 'all', 'one two'])
    assert.equal((await peer.next('ack')).seq, 3)
    peer.send(whole('r4', 'one'), last('r4', 4, ' two', 4), finalMessage('r5', 'after', 5))
    const second = await server.peer()
    const { resume } = await second.welcome({ resume: { epoch: 'e1', from: 4, to: 5, lost: false } })
    assert.deepEqual(resume, { epoch: 'e1', seq: 3 })
    second.send(finalMessage('r4', 'one two', 4), finalMessage('r5', 'after', 5))
    await got.first('message', (message) => message.final && message.id === 'r5')
    assert.deepEqual(got.finals().slice(3), ['one two', 'after'])
  })

  test('chunks are joined, and the cursor waits for the last', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const piece = (index: number, text: string) => ({ t: 'message', id: 'r1', text, chunk: { index, total: 3 }, final: index === 2, seq: 5 })
    peer.send(piece(0, 'a'), finalMessage('r2', 'between', 6), piece(1, 'b'))
    await got.first('message', (message) => message.text === 'between')
    peer.socket.terminate()
    const second = await server.peer()
    const { resume } = await second.welcome({ resume: { epoch: 'e1', from: 1, to: 6, lost: false } })
    assert.deepEqual(resume, { epoch: 'e1', seq: 0 })
    second.send(piece(0, 'a'), piece(1, 'b'), piece(2, 'c'), finalMessage('r2', 'between', 6))
    await got.first('message', (message) => message.text === 'abc')
    assert.equal((await second.next('ack')).seq, 6)
    assert.deepEqual(got.finals(), ['between', 'abc'])
  })

  test('files are assembled, and a broken one has an error', async () => {
    const device = await server.open({ maxFileBytes: 8 })
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const part = (id: string, n: number, of: number, data: string, seq: number, more = {}) => ({
      t: 'media', id, kind: 'image', mime: 'image/png', filename: 'a.png', caption: 'Look', size: 6, part: n, parts: of, final: n === of - 1, seq,
      data: Buffer.from(data).toString('base64'), ...more,
    })
    peer.send(part('f1', 0, 2, 'abc', 1), part('f1', 1, 2, 'def', 1))
    const { data, ...file } = await got.first('file')
    assert.equal(Buffer.from(data!).toString(), 'abcdef')
    assert.deepEqual(file, {
      type: 'file', id: 'f1', kind: 'image', mime: 'image/png', filename: 'a.png', caption: 'Look', size: 6, replyTo: '', source: '', url: '',
    })
    assert.deepEqual(await device.download(await got.first('file')), data)
    peer.send(part('f2', 0, 3, 'abc', 2), part('f2', 2, 3, 'def', 2), part('f3', 0, 1, 'abcdefghi', 3, { size: 9 }), part('f4', 0, 1, 'abc', 4))
    for (const [id, why] of [['f2', /part 2/], ['f3', /larger/], ['f4', /3 bytes/]] as const) {
      const broken = await got.first('file', (f) => f.id === id)
      assert.match(broken.error!.message, why)
      assert.equal(broken.data, undefined)
      await assert.rejects(device.download(broken), why)
    }
  })

  test('notices of new devices come once, and the device can be revoked', async () => {
    const device = await server.open({ notices: true })
    const got = new Collected(device)
    const peer = await server.peer()
    const { accept } = await peer.welcome({ capabilities: { ...capabilities, call: ['devices.revoke'] } })
    assert.ok((accept as string[]).includes('notice'))
    const notice = { t: 'notice', id: 'n1', kind: 'device_added', device: { id: 'tab-2', name: 'Tablet', platform: 'ios' }, user: 'anna', at: '2026-01-02T15:04:05Z', revocable: true, seq: 1 }
    peer.send(notice, notice, { t: 'notice', id: 'n2', kind: 'device_teleported', device: { id: 'tab-3' }, user: 'anna', at: '2026-01-02T15:04:05Z', revocable: false, seq: 2 })
    assert.deepEqual(await got.first('notice'), {
      type: 'notice', id: 'n1', kind: 'device_added', device: { id: 'tab-2', name: 'Tablet', platform: 'ios' }, user: 'anna', conversation: '', rights: [],
      at: '2026-01-02T15:04:05Z', revocable: true,
    })
    assert.equal((await got.first('notice', (n) => n.id !== 'n1')).device.id, 'tab-3')
    assert.equal((await peer.next('ack')).seq, 2)
    const revoked = device.revokeDevice('tab-2')
    const call = await peer.next('call')
    assert.deepEqual([call.method, call.params], ['devices.revoke', { id: 'tab-2' }])
    peer.send({ t: 'result', id: call.id, result: { ok: true } })
    await revoked
  })

  test('a device lists and chooses profiles', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome({ capabilities: { ...capabilities, call: ['profiles.list', 'profiles.choose'] } })
    const list = device.profiles()
    const listed = await peer.next('call')
    const profiles = [{ name: 'default', current: true }, { name: 'work', current: false }]
    peer.send({ t: 'result', id: listed.id, result: { profiles } })
    assert.deepEqual([listed.method, await list], ['profiles.list', profiles])
    const chosen = device.chooseProfile('none')
    const call = await peer.next('call')
    assert.deepEqual([call.method, call.params], ['profiles.choose', { name: 'none' }])
    peer.send({ t: 'result', id: call.id, error: { code: 'not_found', message: 'there is no profile of that name' } })
    await assert.rejects(chosen, { code: 'not_found' })
  })

  test('a new device knows by its own clock when it may answer cards', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    const before = Date.now()
    await peer.welcome({ capabilities: { ...capabilities, prompt: false, answers_in: 42, answers_at: '1999-01-01T00:00:00Z' } })
    const { status } = await got.first('status', (event) => event.status.state === 'online')
    assert.ok(status.answersAt >= before + 42_000 && status.answersAt <= Date.now() + 42_000, String(status.answersAt))
    peer.send({ t: 'capabilities', capabilities, agent: 'online' })
    assert.equal((await got.first('status', (event) => event.status.capabilities.prompt)).status.answersAt, 0)
  })

  test('echoes, tools and frames of later versions', async () => {
    const device = await server.open({ tools: true })
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const file = { kind: 'voice', mime: 'audio/wav', filename: 'v.wav', size: 9, url: '/media/x' }
    peer.send({ t: 'echo', id: 'm20', from: { id: 'tab-2', name: 'Tablet' }, text: 'hi', seq: 1 }, { t: 'echo', id: 'm21', from: { id: 'tab-2' }, file, seq: 2 })
    peer.send({ t: 'tool', id: 'x', name: 'terminal', state: 'progress', title: 'make', text: 'compiling', turn: 'm9' }, { t: 'hologram', depth: 3 })
    assert.deepEqual(await got.first('echo'), { type: 'echo', id: 'm20', from: { id: 'tab-2', name: 'Tablet' }, text: 'hi', replyTo: '' })
    assert.deepEqual((await got.first('echo', (e) => e.id === 'm21')).file, { type: 'file', id: 'm21', ...file, caption: '', replyTo: '', source: '' })
    assert.deepEqual(await got.first('tool'), {
      type: 'tool', id: 'x', name: 'terminal', state: 'progress', title: 'make', text: 'compiling', turn: 'm9',
    })
    assert.deepEqual((await got.first('unknown')).frame, { t: 'hologram', depth: 3 })
    peer.socket.send('no frame')
    peer.send({ t: 'error', code: 'bad_frame', message: 'odd' })
    await got.first('problem', (p) => p.error instanceof SyntaxError)
    await got.first('problem', (p) => p.error.message === 'odd')
    assert.equal((await peer.next('ack')).seq, 2)
  })

  test('the indicator turns off after the timeout', async () => {
    const device = await server.open({ typingTimeout: 30 })
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    const off = () => eventually('off', () => !device.activity.typing && device.activity.avatar === 'idle')
    peer.send({ t: 'avatar', state: 'thinking' }, { t: 'typing' })
    await got.first('activity', (activity) => activity.typing)
    await off() // no sign of work
    peer.send({ t: 'typing' }, { t: 'typing', stop: true })
    await off()
    peer.send({ t: 'typing' })
    await eventually('on', () => device.activity.typing)
    peer.socket.terminate()
    await off()
  })

  test('an event counts once its handling ended', async () => {
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome()
    peer.send(finalMessage('r1', 'one', 1), finalMessage('r2', 'two', 2))
    const message = async () => {
      for (;;) {
        const held = await within('an event', device.next())
        if (held.event.type === 'message') return { ...held, event: held.event }
        await held.handled()
      }
    }
    assert.equal((await message()).event.text, 'one')
    const again = await message() // the first was not handled
    assert.equal(again.event.text, 'one')
    assert.equal(peer.got.filter((f) => f.t === 'ack').length, 0)
    await again.handled()
    await again.handled() // twice is harmless
    assert.equal((await peer.next('ack')).seq, 1)
    for await (const event of device.events()) if (event.type === 'message') break // break handles the event, too
    assert.equal((await peer.next('ack')).seq, 2)
    device.seen()
    assert.deepEqual(await peer.next('ack'), { t: 'ack', seq: 2, seen: true })
  })

  test('an event that a listener did not handle is not acknowledged, and comes again', async (t) => {
    const errors: string[] = []
    const uncaught = (error: Error) => void errors.push(error.message)
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException') // the runner fails a test for uncaught exceptions
    process.on('uncaughtException', uncaught)
    t.after(() => {
      process.off('uncaughtException', uncaught)
      for (const other of others) process.on('uncaughtException', other)
    })
    const cursors: number[] = []
    class Watched extends MemoryStore {
      override setCursor(cursor: { epoch: string; seq: number }): void {
        cursors.push(cursor.seq)
        void super.setCursor(cursor)
      }
    }
    const device = await server.open({ store: new Watched() })
    const got: string[] = []
    let broken = true
    device.on('*', async (event) => {
      if (event.type !== 'message') return
      await Promise.resolve()
      if (event.text === 'two' && broken) throw new Error('the disk is full')
      got.push(event.text)
    })
    const also: string[] = []
    device.on('message', ({ text }) => also.push(text))
    const peer = await server.peer()
    await peer.welcome()
    const [one, two, three] = [finalMessage('r1', 'one', 1), finalMessage('r2', 'two', 2), finalMessage('r3', 'three', 3)]
    peer.send(one, two, three)
    await eventually('the last event', () => got.at(-1) === 'three')
    assert.equal((await peer.next('ack')).seq, 1)
    device.seen()
    assert.deepEqual(await peer.next('ack'), { t: 'ack', seq: 1, seen: true })
    broken = false
    peer.socket.terminate()
    const second = await server.peer()
    const { resume } = await second.welcome({ resume: { epoch: 'e1', from: 2, to: 3, lost: false } })
    assert.deepEqual(resume, { epoch: 'e1', seq: 1 })
    second.send(two, three, finalMessage('r4', 'four', 4))
    assert.equal((await second.next('ack')).seq, 4)
    assert.deepEqual(got, ['one', 'three', 'two', 'three', 'four'])
    assert.deepEqual(also, ['one', 'two', 'three', 'two', 'three', 'four']) // the other listener gets each event every time
    assert.deepEqual(cursors, [0, 1, 2, 3, 4])
    assert.deepEqual(errors, ['the disk is full'])
    second.socket.terminate() // everything is handled: nothing repeats from here on
    const third = await server.peer()
    await third.welcome({ resume: { epoch: 'e1', from: 5, to: 4, lost: false } })
    third.send(finalMessage('r4', 'four', 4), finalMessage('r5', 'five', 5))
    await eventually('the last event', () => got.at(-1) === 'five')
    assert.equal(got.filter((text) => text === 'four').length, 1)
  })

  test('many events make few acks', async () => {
    const device = await server.open()
    const got = new Collected(device)
    const peer = await server.peer()
    await peer.welcome()
    for (let n = 1; n <= 120; n++) peer.send(finalMessage('r' + n, String(n), n))
    await eventually('the last ack', () => peer.got.filter((f) => f.t === 'ack').at(-1)?.seq === 120)
    assert.deepEqual(got.finals().map(Number), Array.from({ length: 120 }, (_, n) => n + 1))
    assert.ok(peer.got.filter((f) => f.t === 'ack').length < 20)
  })

  test('listeners are called in order, and an exception of one ends nothing', async () => {
    const device = await server.open()
    const seen: string[] = []
    const states: string[] = []
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    const fault = new Promise((resolve) => process.once('uncaughtException', resolve))
    device.on('status', ({ status }) => states.push(status.state))
    const peer = await server.peer()
    await peer.welcome()
    await eventually('the status is told without listeners of messages', () => states.includes('online'))
    device.on('cardDone', () => seen.push('card'))
    peer.send({ t: 'prompt_done', id: 'c1', option_id: 'x', expired: true, seq: 1 }, finalMessage('r1', 'one', 2), finalMessage('r2', 'two', 3))
    const pong = device.ping()
    peer.send({ t: 'pong', id: (await peer.next('ping')).id })
    await pong
    assert.equal(seen.length, 0) // events have not started
    const off = device.on('message', async ({ text }) => {
      await Promise.resolve()
      seen.push(text)
      if (text === 'one') throw new Error('of the app')
    })
    await eventually('all', () => seen.length === 3)
    assert.deepEqual(seen, ['card', 'one', 'two'])
    assert.equal(((await within('the fault', fault)) as Error).message, 'of the app')
    for (const other of others) process.on('uncaughtException', other)
    off()
    peer.send(finalMessage('r3', 'three', 4))
    device.on('*', (event) => event.type === 'message' && seen.push(event.text))
    await eventually('the rest', () => seen.at(-1) === 'three')
    assert.equal((await peer.next('ack')).seq, 1)
  })

  test('the events have one reader', async () => {
    const device = await server.open()
    const loop = device.events()
    const first = loop.next()
    await assert.rejects(device.events().next(), /already have a reader/)
    await assert.rejects(device.next(), /already have a reader/)
    assert.throws(() => device.on('message', () => {}), /already have a reader/)
    await first
    await loop.return!()
    const off = device.on('message', () => {})
    await assert.rejects(device.next(), /already have a reader/)
    off()
  })

  test('a slow loop loses nothing, and gets nothing twice', async () => {
    const device = await server.open({ queueBytes: 2_000 })
    const total = 60
    const serve = async (peer: Peer) => {
      const { resume } = await peer.welcome({ resume: { epoch: 'e1', from: 1, to: total, lost: false } })
      const from = ((resume as { seq: number } | undefined)?.seq ?? 0) + 1
      for (let n = from; n <= total; n++) peer.send(finalMessage('r' + n, `${n} ${'x'.repeat(200)}`, n))
      peer.socket.on('message', (data: Buffer) => {
        const frame = JSON.parse(data.toString()) as Frame
        if (frame.t === 'ping') peer.send({ t: 'pong', id: frame.id })
      })
    }
    server.serve = (peer) => void serve(peer).catch(() => {}) // sending to a closed connection fails
    await within('all has come', device.ping())
    const got: Event[] = []
    const loop = (async () => {
      for await (const event of device.events()) {
        got.push(event)
        if (event.type === 'message' && event.text.startsWith(`${total} `)) return
      }
    })()
    await within('all of them', loop)
    const numbers = got.flatMap((event) => (event.type === 'message' ? [parseInt(event.text, 10)] : []))
    assert.deepEqual(numbers, Array.from({ length: total }, (_, n) => n + 1))
    assert.ok(server.peers.length > 1)
  })
})

test('the cursor never passes an unfinished message', () => {
  const p = new Position(10)
  p.begin('file', 11)
  assert.equal(p.done('', 12), 10)
  assert.ok(!p.fresh(12))
  assert.ok(p.fresh(11))
  assert.equal(p.done('', 14), 10)
  assert.equal(p.done('file', 11), 14)
  assert.ok(!p.fresh(13)) // seq may skip numbers
  p.begin('again', 15)
  p.cut()
  assert.equal(p.done('', 16), 16)
  assert.equal(p.done('', 0), 0)
})
