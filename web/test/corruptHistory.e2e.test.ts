import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { DESKTOP, noBrowser, online, PHONE, reads, say, serverRig, until } from './rig'
import { CAPABILITIES, scripted } from './scriptedServer'

describe('a corrupt history', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = serverRig()

  const deviceOf = (page: Page) => page.evaluate(() => (JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string }).id)

  /** put writes rows directly into the stored history. */
  const put = (page: Page, rows: object[]) =>
    page.evaluate(async (rows) => {
      const name = (await indexedDB.databases())[0]!.name!
      const db = await new Promise<IDBDatabase>((resolve, reject) => {
        const request = indexedDB.open(name)
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error as Error)
      })
      const tx = db.transaction('items', 'readwrite')
      rows.forEach((row, i) => tx.objectStore('items').put({ ...row, key: 'abad' + i, n: 1000 + i }))
      await new Promise((resolve) => (tx.oncomplete = resolve))
      db.close()
    }, rows)

  it('shows endlessly nested texts and the messages after them, also after a reload', async () => {
    const visitor = await rig.visit(PHONE)
    const page = await visitor.pair()
    const id = await deviceOf(page)
    const texts = ['- '.repeat(1500) + 'lists', '>'.repeat(4000) + 'quotes', '1. '.repeat(3000) + 'numbers', '['.repeat(20_000) + 'brackets', '*a **b '.repeat(4000) + 'stars']
    for (const text of texts) await rig.server.cli('deliver', '--to', id, '--text', text)
    for (const end of ['lists', 'quotes', 'numbers', 'brackets', 'stars']) await reads(page, end)
    await say(page, 'after it')
    await reads(page, 'You said: after it')
    await page.reload()
    await online(page)
    for (const end of ['lists', 'stars', 'You said: after it']) await reads(page, end)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('opens with any stored rows and shows the valid ones', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    await say(page, 'first')
    await reads(page, 'You said: first')
    await put(page, [
      { kind: 'text', text: 12, at: NaN }, { kind: 'text', text: 'no time', at: 'yesterday' }, { kind: 'text', text: null, at: Infinity, replyTo: {} }, { kind: 'card', options: 'none', at: 1 },
      { kind: 'card', options: [null, { id: 3 }], text: {}, until: 'x', at: -1 }, { kind: 'tools', steps: [1, null, { name: {} }] }, { kind: 'file', name: 5, size: 'big', url: 7, mime: null }, { kind: 'device', device: [], news: 3 }, { kind: 'device', device: { id: 5 } }, { kind: 'of tomorrow', text: 'newer' }, {},
    ])
    await page.reload()
    await online(page)
    await reads(page, 'You said: first')
    await reads(page, 'newer')
    await say(page, 'second')
    await reads(page, 'You said: second')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('contains the error of one row', async () => {
    const visitor = await rig.visit()
    await visitor.context.addInitScript(() => {
      const real = Date.prototype.toISOString
      Date.prototype.toISOString = function () {
        if (this.getTime() === 1234567890123) throw new Error('this row fails')
        return real.call(this)
      }
    })
    const page = await visitor.pair()
    await say(page, 'one')
    await reads(page, 'You said: one')
    await put(page, [{ kind: 'text', text: 'the *words* of the row', at: 1234567890123, final: true }])
    await page.reload()
    await online(page)
    await reads(page, 'the *words* of the row')
    await page.getByText("This message can't be shown with formatting.").waitFor()
    await reads(page, 'You said: one')
    const trouble = await visitor.leave()
    assert.ok(trouble.length > 0 && trouble.every((line) => line.includes('could not be drawn')), trouble.join('\n'))
  })

  /** Answers to calls that no agent should give: invalid times, and one outside of the calendar. */
  const odd: Record<string, object> = {
    'devices.list': { devices: [{ id: 'd1', name: 'Old', connected: false, seen_at: 'never' }] },
    'sessions.list': { sessions: [{ id: 's1', title: 'Odd', preview: 'x', at: 'soon', messages: 1, source: 'cron', current: true }, { id: 's2', title: 'Odder', preview: 'y', at: '+999999-01-01T00:00:00Z', messages: 1, source: 'x', current: false }] },
    'jobs.list': { jobs: [{ id: 'j1', name: 'Tidy', schedule: 'every 2h', prompt: 'tidy', deliver: 'local', paused: false, next_at: 'soon', last_at: '', last_status: 'ok' }, { id: 'j2', name: 'Late', schedule: 'x', prompt: 'y', deliver: 'local', paused: false, next_at: '-999999-01-01' }] },
    'route.show': { kind: 'local', reason: 'it answers', since: 'yesterday', diagnostics: 'x' },
  }

  for (const [name, options] of Object.entries({ phone: PHONE, desktop: DESKTOP }))
    it(`survives any answer of an agent, on a ${name}`, async () => {
      const visitor = await rig.visit(options)
      const page = await scripted(visitor, {
        ready: { avatar_url: 'https://[', capabilities: { ...CAPABILITIES, call: Object.keys(odd) } },
        answer: ({ t, id, method }) => (t === 'call' ? [{ t: 'result', id, result: odd[String(method)] }] : t === 'text' ? [{ t: 'accepted', id, duplicate: false, queued: false }] : []),
      })
      await page.locator('.agent-avatar[data-avatar]').waitFor()
      if (name === 'phone') await page.getByRole('button', { name: 'Sessions' }).click()
      await page.getByText('Odder').first().waitFor()
      await page.getByRole('button', { name: 'Scheduled jobs' }).click()
      const jobs = page.getByRole('dialog', { name: 'Scheduled jobs' })
      await jobs.getByText('Late').waitFor()
      await jobs.getByText('soon').waitFor() // as the agent wrote it
      await jobs.getByRole('button', { name: 'Close' }).click()
      await page.getByRole('button', { name: /Route to the agent/ }).first().click()
      await page.getByText('it answers').waitFor()
      await page.keyboard.press('Escape')
      await say(page, 'still here')
      await page.locator('.mine').getByText('still here').waitFor()
      assert.deepEqual(await visitor.leave(), [])
    })

  it('contains the error of a part around the conversation', async () => {
    const visitor = await rig.visit()
    await visitor.context.addInitScript(() => {
      const real = String.prototype.toLocaleLowerCase
      String.prototype.toLocaleLowerCase = function (...args) {
        if (document.querySelector('dialog[open]')) throw new Error('the panel fails')
        return real.apply(this, args)
      }
    })
    const page = await scripted(visitor, {
      ready: { capabilities: { ...CAPABILITIES, call: ['models.list'] } },
      answer: ({ t, id }) => (t === 'call' ? [{ t: 'result', id, result: { models: [{ id: 'm', name: 'M', current: true }] } }] : t === 'text' ? [{ t: 'accepted', id, duplicate: false, queued: false }] : []),
    })
    await page.getByRole('button', { name: 'Model: M' }).click()
    await page.getByRole('dialog', { name: 'Models' }).getByText('Something went wrong on this page').waitFor()
    await page.getByRole('dialog', { name: 'Models' }).getByRole('button', { name: 'Close' }).click()
    await say(page, 'still here')
    await page.locator('.mine').getByText('still here').waitFor()
    const trouble = await visitor.leave()
    await until(() => trouble.length > 0 && trouble.every((line) => line.includes('could not be drawn')), trouble.join('\n'), 1000)
  })
})
