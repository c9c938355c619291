import 'fake-indexeddb/auto'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { deleteDatabase, openDatabase } from '../src/keep/database'
import { History } from '../src/keep/history'
import { DiskStore } from '../src/keep/store'
import { Conversation } from '../src/talk/conversation'
import { keys, type Fresh, type Item, type TextItem } from '../src/talk/item'

let made = 0
const database = () => openDatabase('ws://a/ws', 'device-' + made++)
const text = (id: string, words = id): Fresh<TextItem> => ({ kind: 'text', key: keys.agent(id), id, mine: false, text: words, final: true, replyTo: '' })

it('keeps what the SDK gives it, in order, across openings', async () => {
  const db = await database()
  const store = new DiskStore(db)
  assert.deepEqual(await store.load(), { cursor: undefined, token: undefined, queue: [] })
  await store.setToken('secret')
  await store.setCursor({ epoch: 'e', seq: 5 })
  for (const id of ['a', 'b', 'c']) await store.add({ id, frame: `"${id}"` })
  await store.remove('b')
  await store.remove('never there')
  const again = await new DiskStore(db).load()
  assert.deepEqual(again, { cursor: { epoch: 'e', seq: 5 }, token: 'secret', queue: [{ id: 'a', frame: '"a"' }, { id: 'c', frame: '"c"' }] })
})

it('does not let the cursor go back within one life of the outbox', async () => {
  const store = new DiskStore(await database())
  await store.setCursor({ epoch: 'e', seq: 9 })
  await store.setCursor({ epoch: 'e', seq: 4 }) // a tab that was replaced
  assert.deepEqual((await store.load()).cursor, { epoch: 'e', seq: 9 })
  await store.setCursor({ epoch: 'f', seq: 1 })
  assert.deepEqual((await store.load()).cursor, { epoch: 'f', seq: 1 })
})

it('writes an outgoing message and its line together, and marks the line when it is taken', async () => {
  const db = await database()
  const [store, history] = [new DiskStore(db), new History(db)]
  const line = { ...text('m'), key: keys.mine('m'), mine: true, progress: 'waiting', n: 1, at: 1 } as Item
  store.along('m', line)
  assert.equal(await history.get(line.key), undefined)
  await store.add({ id: 'm', frame: '{}' })
  assert.deepEqual(await history.get(line.key), line)
  assert.deepEqual(await history.waiting(), [line])
  await store.remove('m')
  assert.equal((await history.get(line.key))?.progress, 'accepted')
  assert.deepEqual(await history.waiting(), [])
})

it('shows the newest page first, and earlier ones when asked, each item once', async () => {
  const history = new History(await database())
  const first = new Conversation(history)
  await first.load()
  for (let i = 0; i < 150; i++) await first.put(text('t' + i))
  const conversation = new Conversation(history)
  await conversation.load()
  assert.deepEqual([conversation.order.value.length, conversation.order.value[0], conversation.more.value], [60, keys.agent('t90'), true])
  await Promise.all([conversation.earlier(), conversation.earlier()])
  await conversation.earlier()
  assert.deepEqual(conversation.order.value, Array.from({ length: 150 }, (_, i) => keys.agent('t' + i)))
  assert.equal(conversation.more.value, false)
})

it('puts what comes again in its old place, also where it is not on the screen', async () => {
  const history = new History(await database())
  const first = new Conversation(history)
  await first.load()
  for (let i = 0; i < 80; i++) await first.put(text('t' + i))
  const conversation = new Conversation(history)
  await conversation.load()
  await conversation.put(text('t1', 'again'))
  await conversation.put(text('t79', 'last again'))
  assert.equal(conversation.order.value.length, 60)
  assert.equal(conversation.order.value.at(-1), keys.agent('t79'))
  await conversation.earlier()
  assert.deepEqual(conversation.order.value.slice(0, 3), ['t0', 't1', 't2'].map(keys.agent))
  assert.equal((conversation.get(keys.agent('t1')) as TextItem).text, 'again')
})

it('changes one signal only', async () => {
  const conversation = new Conversation(new History(await database()))
  await conversation.load()
  await conversation.put(text('a'))
  await conversation.put(text('b'))
  const order = conversation.order.value
  const other = conversation.get(keys.agent('a'))
  await conversation.change(keys.agent('b'), { error: 'x' })
  assert.equal(conversation.order.value, order)
  assert.equal(conversation.get(keys.agent('a')), other)
})

it('clears everything except what is still to be sent', async () => {
  const history = new History(await database())
  const conversation = new Conversation(history)
  await conversation.load()
  await conversation.put(text('a'), new Blob(['x']))
  await conversation.put({ ...text('w'), key: keys.mine('w'), mine: true, progress: 'waiting' })
  await conversation.clear()
  assert.deepEqual(conversation.order.value, [keys.mine('w')])
  assert.deepEqual((await history.before(Infinity, 10)).map((item) => item.key), [keys.mine('w')])
  assert.equal(await history.blob(keys.agent('a')), undefined)
})

it('works without a database, and keeps nothing', async () => {
  const conversation = new Conversation(new History(undefined))
  await conversation.load()
  await conversation.put(text('a'))
  await conversation.change(keys.agent('a'), { error: 'x' })
  assert.equal(conversation.get(keys.agent('a'))?.error, 'x')
  await conversation.put(text('f'), new Blob(['bytes']))
  assert.equal((await conversation.history.blob(keys.agent('f')))?.size, 5) // for this page
})

it('shows what there is no room for, and says so', async () => {
  const db = await database()
  const conversation = new Conversation(new History(db))
  await conversation.load()
  const put = IDBObjectStore.prototype.put
  IDBObjectStore.prototype.put = function (...args) {
    const request = put.apply(this, args)
    this.transaction.abort()
    return request
  }
  try {
    await assert.rejects(conversation.put(text('f'), new Blob(['bytes'])))
  } finally {
    IDBObjectStore.prototype.put = put
  }
  assert.equal(conversation.get(keys.agent('f'))?.id, 'f')
  assert.equal((await conversation.history.blob(keys.agent('f')))?.size, 5)
})

it('deletes a database', async () => {
  const db = await openDatabase('ws://a/ws', 'gone')
  await new DiskStore(db).setToken('x')
  db.close()
  await deleteDatabase('ws://a/ws', 'gone')
  assert.equal((await new DiskStore(await openDatabase('ws://a/ws', 'gone')).load()).token, undefined)
})
