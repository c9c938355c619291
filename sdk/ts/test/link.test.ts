import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Link, type Socket } from '../src/link.js'

/** FakeSocket is a socket that a test controls, for behavior that depends on the clock. */
class FakeSocket implements Socket {
  static last: FakeSocket
  readyState = 0
  bufferedAmount = 0
  onopen: Socket['onopen'] = null
  onmessage: Socket['onmessage'] = null
  onerror: Socket['onerror'] = null
  onclose: Socket['onclose'] = null
  readonly sent: string[] = []
  closedWith: number | undefined
  terminated = false

  constructor(readonly url: string) {
    FakeSocket.last = this
  }

  send(data: string): void {
    this.sent.push(data)
  }

  close(code?: number): void {
    this.closedWith = code
  }

  terminate(): void {
    this.terminated = true
  }

  open(): void {
    this.readyState = 1
    this.onopen?.({})
  }
}

/** make returns a live link whose clock the test controls. */
function make(t: { after(f: () => void): void }) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  t.after(() => mock.timers.reset())
  const received: string[] = []
  const link = new Link(FakeSocket, 'ws://x/ws', { heartbeat: 30_000, pongTimeout: 15_000, connectTimeout: 15_000 }, () => {}, (text) => received.push(text))
  const socket = FakeSocket.last
  socket.open()
  link.ready()
  let ending: { code: number; error: Error } | undefined
  void link.ended.then((e) => (ending = e))
  return { link, socket, received, ending: () => ending, tick: (ms: number) => mock.timers.tick(ms) }
}

/** settled lets resolved promises run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

test('the device pings a silent server, and detects a half-open connection', async (t) => {
  const { socket, tick, ending } = make(t)
  tick(29_999)
  assert.deepEqual(socket.sent, [])
  tick(1)
  assert.deepEqual(socket.sent, ['{"t":"ping"}'])
  tick(15_000)
  assert.equal(socket.closedWith, 1000)
  tick(1_000) // no close frame comes
  await settled()
  assert.equal(ending()?.code, 0)
  assert.match(ending()!.error.message, /ping/)
  assert.equal(socket.terminated, true)
})

test('any message counts as a sign of life', async (t) => {
  const { socket, tick, received } = make(t)
  tick(20_000)
  socket.onmessage?.({ data: '{"t":"typing"}' })
  tick(29_000)
  assert.deepEqual(socket.sent, [])
  tick(1_000)
  assert.equal(socket.sent.length, 1)
  tick(14_000)
  socket.onmessage?.({ data: '{"t":"pong"}' })
  tick(29_000)
  assert.equal(socket.closedWith, undefined)
  assert.equal(received.length, 2)
})

test('the progress of an upload is a sign of life', async (t) => {
  const { socket, tick } = make(t)
  socket.bufferedAmount = 900_000
  tick(30_000)
  for (let n = 0; n < 4; n++) {
    socket.bufferedAmount -= 200_000
    tick(15_000)
  }
  assert.equal(socket.closedWith, undefined)
  tick(15_000) // no more progress
  assert.equal(socket.closedWith, 1000)
})

test('a page that slept reads its messages before it gives up', async (t) => {
  const { socket, tick } = make(t)
  tick(30_000)
  assert.equal(socket.sent.length, 1)
  // The clock runs while timers and messages are frozen, and then the timer fires first.
  const late = Date.now() + 3_600_000
  mock.method(Date, 'now', () => late)
  tick(15_000)
  assert.equal(socket.closedWith, undefined)
  assert.equal(socket.sent.length, 2)
  mock.restoreAll()
})

test('setting the clock back hides no dead connection', async (t) => {
  const { socket, tick } = make(t)
  const { now } = Date
  mock.method(Date, 'now', () => now() - 3_600_000)
  tick(30_000)
  assert.equal(socket.sent.length, 1)
  tick(15_000)
  assert.equal(socket.closedWith, 1000)
  mock.restoreAll()
})

test('a probe detects a dead connection soon, and keeps a live one', async (t) => {
  const { link, socket, tick } = make(t)
  link.probe()
  assert.equal(socket.sent.length, 1)
  tick(1_000)
  socket.onmessage?.({ data: '{"t":"pong"}' })
  tick(4_000)
  assert.equal(socket.closedWith, undefined)
  link.probe()
  tick(5_000)
  assert.equal(socket.closedWith, 1000)
})

test('the device gives up a connection that does not open', async (t) => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  t.after(() => mock.timers.reset())
  let opened = 0
  const link = new Link(FakeSocket, 'ws://x/ws', { heartbeat: 1, pongTimeout: 1, connectTimeout: 15_000 }, () => opened++, () => {})
  const socket = FakeSocket.last
  mock.timers.tick(15_000)
  assert.equal(socket.closedWith, 1000)
  socket.open() // too late
  assert.equal(opened, 0)
  assert.equal(link.send('x'), false)
  socket.onclose?.({ code: 1000 })
  assert.equal((await link.ended).code, 0)
})
