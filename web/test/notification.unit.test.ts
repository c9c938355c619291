import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { unsupportedReason } from '../src/notify/support'
import { buttonActions, parseNotice, NotificationTexts, notificationTag, withoutIDs, type PushNotice } from '../src/notify/notification'
import { sendAction } from '../src/notify/action'
import { sameKey } from '../src/notify/subscription'
import { isQuietHours } from '../src/notify/preferences'

const [english, russian] = [new NotificationTexts('en'), new NotificationTexts('ru')]
const message = (ids: string[], more: Partial<PushNotice> = {}): PushNotice => parseNotice(JSON.stringify({ type: 'message', id: ids.at(-1), ids, count: ids.length, ...more }))
const option = (id: string, label = id) => ({ id, label, token: 'token-' + id })
const body = (speech: NotificationTexts, notice: PushNotice) => speech.render(notice, 2).options.body

it('parses anything and shows a notification for it', () => {
  for (const data of ['', '{', 'null', '[]', '7', '"x"', '{"type":"wake"}', '{"type":"of the future","body":"x"}', '{"type":{}}', '{"type":"outcome","body":"x"}']) {
    const notice = parseNotice(data)
    assert.equal(notice.type, 'wake', data)
    assert.equal(body(english, notice), 'You have something new')
  }
  const odd = parseNotice('{"type":"card","ids":[1,"a",null],"count":"many","title":{},"body":[],"actions":[null,{"id":"once"},{"id":"deny","token":"t"},7]}')
  assert.deepEqual([odd.id, odd.ids, odd.count, odd.title, odd.body, odd.actions], ['a', ['a'], 1, '', '', [{ id: 'deny', label: '', token: 't' }]])
})

it('counts in both languages, and shows the text if there is one', () => {
  assert.deepEqual([1, 2, 5].map((count) => body(english, message(['a'], { count }))), ['1 new message', '2 new messages', '5 new messages'])
  assert.deepEqual([1, 2, 5].map((count) => body(russian, message(['a'], { count }))), ['1 новое сообщение', '2 новых сообщения', '5 новых сообщений'])
  assert.equal(body(english, message(['a'], { type: 'file' })), 'Hermes sent a file')
  assert.equal(body(english, message(['a'], { type: 'card' })), 'Hermes is waiting for your answer')
  const { title, options } = english.render(message(['a', 'b'], { title: 'Breakfast', body: '<b>done</b>' }), 2)
  assert.deepEqual([title, options.body, options.tag, options.requireInteraction], ['Breakfast', '<b>done</b>\n2 new messages', 'messages', false])
})

it("replaces a message notification, but never a card's", () => {
  assert.equal(notificationTag(message(['a'])), notificationTag(message(['b'], { type: 'file' })))
  const card = (id: string) => message(['x', id, 'y'], { type: 'card', id })
  assert.notEqual(notificationTag(card('a')), notificationTag(card('b')))
  assert.equal(notificationTag({ ...card('a'), type: 'outcome' }), notificationTag(card('a'))) // the outcome replaces the card
})

it('withdraws finished ids and keeps the others', () => {
  const two = message(['a', 'b'], { title: 'Hermes', body: 'words of b' })
  assert.equal(withoutIDs(two, ['a', 'b', 'c']), undefined)
  assert.equal(withoutIDs(two, ['c']), two)
  assert.equal(body(english, withoutIDs(two, ['a'])!), 'words of b')
  assert.equal(body(english, withoutIDs(two, ['b'])!), '1 new message') // the text is no longer news
  assert.equal(withoutIDs(message(['a', 'b'], { count: 40 }), ['a'])!.count, 39)
  const card = message(['a', 'c', 'b'], { type: 'card', id: 'c' })
  assert.equal(withoutIDs(card, ['c']), undefined)
  assert.equal(withoutIDs(card, ['a', 'b'])!.id, 'c')
  const outcome: PushNotice = { ...card, type: 'outcome' }
  assert.equal(withoutIDs(outcome, ['c']), outcome) // the user hasn't read it yet
})

it('has buttons to allow once and to deny, as many as the system supports', () => {
  const all = ['session', 'once', 'always', 'deny'].map((id) => option(id))
  assert.deepEqual(buttonActions(all, 2).map(({ id }) => id), ['once', 'deny'])
  assert.deepEqual(buttonActions(all, 1).map(({ id }) => id), ['once'])
  assert.deepEqual(buttonActions(all, 0), [])
  assert.deepEqual(buttonActions([option('deny')], 2).map(({ id }) => id), ['deny'])
  assert.deepEqual(buttonActions([option('sure'), option('deny')], 2).map(({ id }) => id), ['sure', 'deny'])
})

it("asks to open the page if the card isn't complete", () => {
  const card = (...actions: string[]) => message(['c'], { type: 'card', id: 'c', body: 'May I?\nls …', actions: actions.map((id) => option(id)) })
  assert.equal(body(english, card('deny')), 'May I?\nls …\nOpen to read all of it and answer.')
  assert.equal(body(russian, card('cancel')), 'May I?\nls …\nОткройте, чтобы прочитать целиком и ответить.')
  assert.equal(body(english, card('once', 'deny')), 'May I?\nls …')
  assert.equal(body(english, card()), 'May I?\nls …') // the owner doesn't allow answers from notifications
  assert.deepEqual(english.render(card('deny'), 2).options.actions.map(({ action }) => action), ['deny'])
})

describe('a button of a notification', () => {
  const real = globalThis.fetch
  afterEach(() => void (globalThis.fetch = real))
  const pressed = async (answer: Response | Error, speech = english) => {
    let sent: unknown
    globalThis.fetch = async (url, init) => {
      sent = [url, init?.method, init?.body, init?.credentials, new Headers(init?.headers).get('Content-Type')]
      if (answer instanceof Error) throw answer
      return answer
    }
    const got = await sendAction('https://a/push/action', option('once'), [option('once', 'Allow once'), option('deny', 'Deny'), option('always', 'Always allow')], speech)
    assert.deepEqual(sent, ['https://a/push/action', 'POST', '{"token":"token-once"}', 'omit', 'application/json'])
    return got
  }
  const answers = (status: number, told: object) => new Response(JSON.stringify(told), { status })

  it('says what happened', async () => {
    const cases: [Response | Error, string, boolean][] = [
      [answers(200, { done: true, option_id: 'once' }), 'Allowed.', false],
      [answers(200, { done: true, option_id: 'always' }), 'Answered: Always allow', false],
      [answers(409, { done: false, option_id: 'deny', message: 'x' }), 'Already answered. Denied.', false],
      [answers(409, { done: false }), 'Already answered.', false],
      [answers(410, { done: false, option_id: 'deny' }), 'The time to answer has run out.', false],
      [answers(403, { done: false }), "The server didn't accept your answer. Open the page to see why.", false],
    ]
    for (const [answer, text, retry] of cases) assert.deepEqual(await pressed(answer), { text, retry })
    assert.equal((await pressed(answers(200, { done: true, option_id: 'once' }), russian)).text, 'Разрешено.')
  })

  it("claims nothing that the server didn't confirm", async () => {
    const notReached = "Couldn't reach the server. Try again, or open the page to see whether your answer arrived."
    for (const answer of [new TypeError('failed'), answers(503, {}), answers(429, {}), answers(502, {}), answers(200, {}), new Response('<h1>Log in to the network</h1>'), new Response('null')])
      assert.deepEqual(await pressed(answer), { text: notReached, retry: true })
  })
})

it('detects browsers that support notifications', () => {
  const around = (userAgent: string, more: { secure?: boolean; push?: boolean; touch?: number; standalone?: boolean } = {}) =>
    unsupportedReason({ isSecureContext: more.secure ?? true, navigator: { userAgent, maxTouchPoints: more.touch ?? 0, standalone: more.standalone }, has: () => more.push ?? false })
  assert.equal(around('Chrome', { push: true }), '')
  assert.equal(around('Chrome', { push: true, secure: false }), 'insecure')
  assert.equal(around('iPhone'), 'install')
  assert.equal(around('Macintosh', { touch: 5 }), 'install') // an iPad that claims to be a Mac
  assert.equal(around('iPhone', { standalone: true }), 'unsupported') // before iOS 16.4
  assert.equal(around('iPhone', { standalone: true, push: true }), '')
  assert.equal(around('Macintosh'), 'unsupported')
})

it('compares keys and checks hours', () => {
  const bytes = Uint8Array.from([251, 255, 191, 1])
  assert.equal(sameKey(bytes.buffer, Buffer.from(bytes).toString('base64url')), true)
  assert.equal(sameKey(bytes.buffer, 'AAAA'), false)
  assert.equal(sameKey(null, ''), false)
  assert.equal(isQuietHours({ from: '22:00', to: '07:00' }), true)
  for (const [from, to] of [['22:00', '22:00'], ['', '07:00'], ['24:00', '07:00'], ['7:00', '08:00']]) assert.equal(isQuietHours({ from: from!, to: to! }), false)
})
