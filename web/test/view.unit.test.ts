import 'fake-indexeddb/auto'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { signal } from '@preact/signals'
import type { Calls } from '../src/agent/calls'
import { pastOf, type Message } from '../src/agent/past'
import { openDatabase } from '../src/keep/database'
import { History } from '../src/keep/history'
import { Conversation } from '../src/talk/conversation'
import { keys, type Fresh } from '../src/talk/item'

const text = (id: string, more: object = {}): Fresh => ({ kind: 'text', key: keys.agent(id), id, mine: false, text: id, final: true, replyTo: '', ...more }) as Fresh
const shown = (conversation: Conversation) => conversation.order.value.map((key) => key)
let n = 0
const history = async () => new History(await openDatabase('wss://x/ws', 'view-' + ++n))

/** gateway gives pages of messages 1 to `count`, `size` at a time. */
function gateway(count: number, size = 50) {
  const asked: (string | undefined)[] = []
  const state = { count, failsAt: -1, role: 'user' }
  const message = (id: number): Message => ({ id, role: state.role, text: 'said ' + id, at: '2026-01-02T15:04:05Z', ...(state.role === 'tool' && { tool: 'terminal' }) })
  const calls = {
    status: signal(undefined),
    ask: async (_: string, { cursor }: { cursor?: string }) => {
      if (asked.length === state.failsAt) throw new Error('not now')
      asked.push(cursor)
      const end = state.count - Number(cursor ?? 0)
      const from = Math.max(0, end - size)
      return { messages: Array.from({ length: end - from }, (_, i) => message(from + i + 1)), ...(from > 0 && { cursor: String(Number(cursor ?? 0) + size) }) }
    },
  } as unknown as Calls
  return { calls, asked, state }
}

it('shows a session above what comes after it was opened, also after a reload', async () => {
  const disk = await history()
  const before = new Conversation(disk)
  await before.load()
  await before.put(text('old'))
  await before.put({ ...text('waits'), mine: true, progress: 'waiting' } as Fresh)
  const { calls } = gateway(3)
  await before.look({ session: 's', title: 'S', last: 3 }, pastOf(calls, 's', 3))
  await before.put(text('new'))
  assert.deepEqual(shown(before), ['h1', 'h2', 'h3', 'awaits', 'anew'])

  const after = new Conversation(disk)
  after.view.value = before.view.value
  await after.load()
  assert.deepEqual(shown(after), ['awaits', 'anew'])
  after.from(pastOf(calls, 's', 3))
  await after.earlier()
  assert.deepEqual(shown(after), ['h1', 'h2', 'h3', 'awaits', 'anew'])
  await after.earlier()
  assert.equal(after.more.value, false)

  // What is of before has kept its place on the disk.
  await after.put(text('old', { text: 'changed' }))
  assert.deepEqual(shown(after), ['h1', 'h2', 'h3', 'awaits', 'anew'])
  await after.leave()
  assert.deepEqual(shown(after), ['aold', 'awaits', 'anew'])
})

it('goes to all that this device has where something of before is wanted', async () => {
  const conversation = new Conversation(await history())
  await conversation.load()
  await conversation.put(text('old'))
  const { calls, asked } = gateway(1000)
  await conversation.look({ session: 's', title: '', last: 1000 }, pastOf(calls, 's', 1000))
  assert.equal(await conversation.find(keys.agent('nowhere')), false)
  assert.ok(conversation.view.value)
  assert.equal(await conversation.find(keys.agent('old')), true)
  assert.equal(conversation.view.value, undefined)
  assert.deepEqual(shown(conversation), ['aold'])
  assert.equal(asked.length, 1) // nobody read the whole session for that
})

it('keeps its place in the order after the history was cleared', async () => {
  const disk = await history()
  const conversation = new Conversation(disk)
  await conversation.load()
  for (const id of ['a', 'b', 'c']) await conversation.put(text(id))
  const { calls } = gateway(2)
  await conversation.look({ session: 's', title: '', last: 2 }, pastOf(calls, 's', 2))
  const view = conversation.view.value!
  await disk.clear(new Set())
  const next = new Conversation(disk)
  next.view.value = view
  await next.load()
  await next.put(text('d'))
  const last = new Conversation(disk)
  last.view.value = view
  await last.load()
  assert.deepEqual(shown(last), ['ad'])
  await last.clear()
  assert.equal(last.view.value, undefined)
  assert.deepEqual(shown(last), [])
})

it('reads a history from its end, each message once, up to where this device begins', async () => {
  const { calls, state } = gateway(120)
  const past = pastOf(calls, 's', 118)
  const first = await past()
  assert.deepEqual(first!.map(({ id }) => id), Array.from({ length: 48 }, (_, i) => String(71 + i)))
  state.count = 130 // what came meanwhile moves the pages
  const conversation = new Conversation(new History(undefined))
  conversation.view.value = { session: 's', title: '', floor: 0, last: 118 }
  const all = pastOf(calls, 's', 118)
  conversation.from(all)
  await conversation.earlier()
  state.count = 135
  while (conversation.more.value) await conversation.earlier()
  assert.deepEqual(shown(conversation), Array.from({ length: 118 }, (_, i) => 'h' + (i + 1)))
})

it('goes on after a page that failed, with what it had read', async () => {
  const { calls, state } = gateway(40, 10)
  state.failsAt = 1 // the first page fills no screen, and the second does not come
  const conversation = new Conversation(new History(undefined))
  conversation.from(pastOf(calls, 's', 40))
  await assert.rejects(conversation.earlier())
  assert.equal(conversation.more.value, true)
  state.failsAt = -1
  while (conversation.more.value) await conversation.earlier()
  assert.deepEqual(shown(conversation), Array.from({ length: 40 }, (_, i) => 'h' + (i + 1)))
})

it('shows what tools answered one after the other as one row', async () => {
  const { calls, state } = gateway(60, 10)
  state.role = 'tool'
  const rows = await pastOf(calls, 's', 60)()
  assert.equal(rows!.length, 1) // and all pages were read for it, for one row fills no screen
  assert.equal(rows![0]!.kind === 'tools' && rows![0]!.steps.length, 60)
})
