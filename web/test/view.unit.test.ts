import 'fake-indexeddb/auto'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { signal } from '@preact/signals'
import type { Calls } from '../src/agent/calls'
import { sessionHistory, type HistoryMessage } from '../src/agent/sessionHistory'
import { openDatabase } from '../src/storage/database'
import { History } from '../src/storage/history'
import { Conversation } from '../src/conversation/conversation'
import { keys, type NewItem } from '../src/conversation/item'

const text = (id: string, more: object = {}): NewItem => ({ kind: 'text', key: keys.agent(id), id, mine: false, text: id, final: true, replyTo: '', ...more }) as NewItem
const shown = (conversation: Conversation) => conversation.order.value.map((key) => key)
let n = 0
const history = async () => new History(await openDatabase('wss://x/ws', 'view-' + ++n))

/** gateway returns pages of the messages 1 to `count`, `size` at a time. */
function gateway(count: number, size = 50) {
  const asked: (string | undefined)[] = []
  const state = { count, failsAt: -1, role: 'user' }
  const message = (id: number): HistoryMessage => ({ id, role: state.role, text: 'said ' + id, at: '2026-01-02T15:04:05Z', ...(state.role === 'tool' && { tool: 'terminal' }) })
  const calls = {
    status: signal(undefined),
    call: async (_: string, { cursor }: { cursor?: string }) => {
      if (asked.length === state.failsAt) throw new Error('not now')
      asked.push(cursor)
      const end = state.count - Number(cursor ?? 0)
      const from = Math.max(0, end - size)
      return { messages: Array.from({ length: end - from }, (_, i) => message(from + i + 1)), ...(from > 0 && { cursor: String(Number(cursor ?? 0) + size) }) }
    },
  } as unknown as Calls
  return { calls, asked, state }
}

it("shows a session's history above later items, also after a reload", async () => {
  const disk = await history()
  const before = new Conversation(disk)
  await before.load()
  await before.put(text('old'))
  await before.put({ ...text('waits'), mine: true, progress: 'waiting' } as NewItem)
  const { calls } = gateway(3)
  await before.openView({ session: 's', title: 'S', last: 3 }, sessionHistory(calls, 's', 3))
  await before.put(text('new'))
  assert.deepEqual(shown(before), ['h1', 'h2', 'h3', 'awaits', 'anew'])

  const after = new Conversation(disk)
  after.view.value = before.view.value
  await after.load()
  assert.deepEqual(shown(after), ['awaits', 'anew'])
  after.setHistory(sessionHistory(calls, 's', 3))
  await after.loadEarlier()
  assert.deepEqual(shown(after), ['h1', 'h2', 'h3', 'awaits', 'anew'])
  await after.loadEarlier()
  assert.equal(after.hasMore.value, false)

  // Earlier items keep their position in storage.
  await after.put(text('old', { text: 'changed' }))
  assert.deepEqual(shown(after), ['h1', 'h2', 'h3', 'awaits', 'anew'])
  await after.closeView()
  assert.deepEqual(shown(after), ['aold', 'awaits', 'anew'])
})

it('closes the view to reveal an earlier item', async () => {
  const conversation = new Conversation(await history())
  await conversation.load()
  await conversation.put(text('old'))
  const { calls, asked } = gateway(1000)
  await conversation.openView({ session: 's', title: '', last: 1000 }, sessionHistory(calls, 's', 1000))
  assert.equal(await conversation.reveal(keys.agent('nowhere')), false)
  assert.ok(conversation.view.value)
  assert.equal(await conversation.reveal(keys.agent('old')), true)
  assert.equal(conversation.view.value, undefined)
  assert.deepEqual(shown(conversation), ['aold'])
  assert.equal(asked.length, 1) // no one loaded the whole session for that
})

it('keeps positions increasing after the history was cleared', async () => {
  const disk = await history()
  const conversation = new Conversation(disk)
  await conversation.load()
  for (const id of ['a', 'b', 'c']) await conversation.put(text(id))
  const { calls } = gateway(2)
  await conversation.openView({ session: 's', title: '', last: 2 }, sessionHistory(calls, 's', 2))
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

it('reads a history backwards, each message once, up to where this device starts', async () => {
  const { calls, state } = gateway(120)
  const past = sessionHistory(calls, 's', 118)
  const first = await past()
  assert.deepEqual(first!.map(({ id }) => id), Array.from({ length: 48 }, (_, i) => String(71 + i)))
  state.count = 130 // new messages shift the pages
  const conversation = new Conversation(new History(undefined))
  conversation.view.value = { session: 's', title: '', floor: 0, last: 118 }
  const all = sessionHistory(calls, 's', 118)
  conversation.setHistory(all)
  await conversation.loadEarlier()
  state.count = 135
  while (conversation.hasMore.value) await conversation.loadEarlier()
  assert.deepEqual(shown(conversation), Array.from({ length: 118 }, (_, i) => 'h' + (i + 1)))
})

it('continues after a failed page', async () => {
  const { calls, state } = gateway(40, 10)
  state.failsAt = 1 // the first page doesn't fill the screen, and the second fails
  const conversation = new Conversation(new History(undefined))
  conversation.setHistory(sessionHistory(calls, 's', 40))
  await assert.rejects(conversation.loadEarlier())
  assert.equal(conversation.hasMore.value, true)
  state.failsAt = -1
  while (conversation.hasMore.value) await conversation.loadEarlier()
  assert.deepEqual(shown(conversation), Array.from({ length: 40 }, (_, i) => 'h' + (i + 1)))
})

it('joins consecutive tool outputs into one item', async () => {
  const { calls, state } = gateway(60, 10)
  state.role = 'tool'
  const rows = await sessionHistory(calls, 's', 60)()
  assert.equal(rows!.length, 1) // all pages were loaded for it, because one row doesn't fill the screen
  assert.equal(rows![0]!.kind === 'tools' && rows![0]!.steps.length, 60)
})
