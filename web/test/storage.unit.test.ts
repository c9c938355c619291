import 'fake-indexeddb/auto'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { AttachmentStore } from '../src/storage/attachmentStore'
import { deleteDatabase, openDatabase } from '../src/storage/database'
import { History } from '../src/storage/history'
import { DeviceStore } from '../src/storage/deviceStore'
import { Attachments } from '../src/conversation/attachments'
import { Conversation } from '../src/conversation/conversation'
import { keys, type NewItem, type Item, type TextItem } from '../src/conversation/item'
import { Sender } from '../src/conversation/sender'

let made = 0
const database = () => openDatabase('ws://a/ws', 'device-' + made++)
const text = (id: string, words = id): NewItem<TextItem> => ({ kind: 'text', key: keys.agent(id), id, mine: false, text: words, final: true, replyTo: '' })

it("stores the SDK's state in order", async () => {
  const db = await database()
  const store = new DeviceStore(db)
  assert.deepEqual(await store.load(), { cursor: undefined, token: undefined, queue: [] })
  await store.setToken('secret')
  await store.setCursor({ epoch: 'e', seq: 5 })
  for (const id of ['a', 'b', 'c']) await store.add({ id, frame: `"${id}"` })
  await store.remove('b')
  await store.remove('never there')
  const again = await new DeviceStore(db).load()
  assert.deepEqual(again, { cursor: { epoch: 'e', seq: 5 }, token: 'secret', queue: [{ id: 'a', frame: '"a"' }, { id: 'c', frame: '"c"' }] })
})

it('never moves the cursor back within an epoch', async () => {
  const store = new DeviceStore(await database())
  await store.setCursor({ epoch: 'e', seq: 9 })
  await store.setCursor({ epoch: 'e', seq: 4 }) // a tab that was replaced
  assert.deepEqual((await store.load()).cursor, { epoch: 'e', seq: 9 })
  await store.setCursor({ epoch: 'f', seq: 1 })
  assert.deepEqual((await store.load()).cursor, { epoch: 'f', seq: 1 })
})

it('writes an outgoing message and its item together, and marks the item when the server accepts it', async () => {
  const db = await database()
  const [store, history] = [new DeviceStore(db), new History(db)]
  const line = { ...text('m'), key: keys.mine('m'), mine: true, progress: 'waiting', n: 1, at: 1 } as Item
  store.storeWith('m', line)
  assert.equal(await history.get(line.key), undefined)
  await store.add({ id: 'm', frame: '{}' })
  assert.deepEqual(await history.get(line.key), line)
  assert.deepEqual(await history.waiting(), [line])
  await store.remove('m')
  assert.equal((await history.get(line.key))?.progress, 'accepted')
  assert.deepEqual(await history.waiting(), [])
})

it('shows the newest page first and earlier ones on demand, each item once', async () => {
  const history = new History(await database())
  const first = new Conversation(history)
  await first.load()
  for (let i = 0; i < 150; i++) await first.put(text('t' + i))
  const conversation = new Conversation(history)
  await conversation.load()
  assert.deepEqual([conversation.order.value.length, conversation.order.value[0], conversation.hasMore.value], [60, keys.agent('t90'), true])
  await Promise.all([conversation.loadEarlier(), conversation.loadEarlier()])
  await conversation.loadEarlier()
  assert.deepEqual(conversation.order.value, Array.from({ length: 150 }, (_, i) => keys.agent('t' + i)))
  assert.equal(conversation.hasMore.value, false)
})

it('keeps the position of a repeated item, also off screen', async () => {
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
  await conversation.loadEarlier()
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

it('clears everything except unsent items', async () => {
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

it('works without a database and stores nothing', async () => {
  const conversation = new Conversation(new History(undefined))
  await conversation.load()
  await conversation.put(text('a'))
  await conversation.change(keys.agent('a'), { error: 'x' })
  assert.equal(conversation.get(keys.agent('a'))?.error, 'x')
  await conversation.put(text('f'), new Blob(['bytes']))
  assert.equal((await conversation.history.blob(keys.agent('f')))?.size, 5) // for this page
})

/** full makes the browser reject all writes. */
async function full(act: () => Promise<unknown>): Promise<void> {
  const put = IDBObjectStore.prototype.put
  IDBObjectStore.prototype.put = function (...args) {
    const request = put.apply(this, args)
    this.transaction.abort()
    return request
  }
  try {
    await act()
  } finally {
    IDBObjectStore.prototype.put = put
  }
}

it('shows items without storage space, and says so', async () => {
  const db = await database()
  const conversation = new Conversation(new History(db))
  await conversation.load()
  await full(() => assert.rejects(conversation.put(text('f'), new Blob(['bytes']))))
  assert.equal(conversation.get(keys.agent('f'))?.id, 'f')
  assert.equal((await conversation.history.blob(keys.agent('f')))?.size, 5)
})

it('sends a file without storage space, with its progress', async () => {
  const conversation = new Conversation(new History(await database()))
  await conversation.load()
  const sent: { id: string; size: number; begun: number | undefined }[] = []
  const device = {
    sendFile: async ({ data, progress }: { data: Blob; progress: (sent: number, total: number) => void }, { id }: { id: string }) => {
      sent.push({ id, size: data.size, begun: sending.uploads.get(keys.mine(id))?.value })
      progress(1, 2)
    },
  }
  const sending = new Sender(device as never, conversation, undefined)
  await full(() => sending.sendFile({ id: 'f', blob: new Blob(['bytes']), name: 'a.bin', caption: '' }))
  assert.deepEqual(sent, [{ id: 'f', size: 5, begun: 0 }])
  assert.equal(sending.uploads.get(keys.mine('f'))?.value, 0.5)
  assert.equal(conversation.get(keys.mine('f'))?.progress, 'waiting')
})

it('keeps attachments in order until they are removed or sent', async () => {
  const db = await database()
  const history = new History(db)
  const load = async () => {
    const attachments = new Attachments(new AttachmentStore(db))
    await attachments.load(history)
    return attachments
  }
  const file = (id: string) => ({ id, name: id + '.bin', blob: new Blob([id]), smaller: undefined, reduce: false })
  const names = (attachments: Attachments) => attachments.list.value.map(({ name, reduce }) => name + (reduce ? ' smaller' : ''))
  const first = await load()
  for (let i = 0; i < 12; i++) await first.add(file('f' + i))
  await first.reduce('f3', true)
  for (let i = 4; i < 12; i++) await first.remove('f' + i)
  const second = await load()
  assert.deepEqual(names(second), ['f0.bin', 'f1.bin', 'f2.bin', 'f3.bin smaller'])
  assert.equal(await second.list.value[1]!.blob.text(), 'f1')
  await second.add(file('f12'))
  void second.add(file('never'))
  await second.remove('never') // it is removed while it is being written
  // The page closes while they are being sent: attachments already in the conversation aren't
  // offered again.
  second.take()
  assert.deepEqual(names(second), [])
  await history.put({ ...text('f0'), key: keys.mine('f0'), mine: true, progress: 'waiting', n: 1, at: 1 } as Item)
  await second.remove('f1')
  assert.deepEqual(names(await load()), ['f2.bin', 'f3.bin smaller', 'f12.bin'])
  assert.deepEqual(names(await load()), ['f2.bin', 'f3.bin smaller', 'f12.bin'])
  // No space: it exists until the page closes.
  const third = await load()
  await full(() => third.add(file('f13')))
  assert.equal(third.list.value.length, 4)
  assert.equal((await load()).list.value.length, 3)
  const none = new Attachments(new AttachmentStore(undefined))
  await none.add(file('f14'))
  await none.remove('f14')
  assert.deepEqual(names(none), [])
  // It isn't part of the history and stays when that is cleared.
  await history.clear(new Set())
  assert.equal((await load()).list.value.length, 3)
})

it('deletes a database', async () => {
  const db = await openDatabase('ws://a/ws', 'gone')
  await new DeviceStore(db).setToken('x')
  db.close()
  await deleteDatabase('ws://a/ws', 'gone')
  assert.equal((await new DeviceStore(await openDatabase('ws://a/ws', 'gone')).load()).token, undefined)
})
