import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noBrowser, reads, say, serverRig } from './rig'
import { scripted } from './scriptedServer'

describe('rare states', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = serverRig()

  it('shows why a message failed, and retries under the same id', async () => {
    const visitor = await rig.visit()
    const ids: unknown[] = []
    const page = await scripted(visitor, {
      answer: (frame) => {
        if (frame.t !== 'text') return []
        ids.push(frame.id)
        return ids.length === 1 ? [{ t: 'error', code: 'too_big', message: 'x', ref: frame.id }] : [{ t: 'accepted', id: frame.id, duplicate: false, queued: false }]
      },
    })
    await say(page, 'once more')
    await page.getByText('This is larger than the server accepts.').waitFor()
    await page.reload()
    await page.getByText('This is larger than the server accepts.').waitFor()
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.locator('[data-progress=accepted]').waitFor()
    assert.equal(await page.locator('.mine').count(), 1)
    assert.equal(ids[0], ids[1])
    assert.deepEqual(await visitor.leave(), [])
  })

  it("marks scheduled messages, shows unknown kinds of cards, names another device's answer", async () => {
    const visitor = await rig.visit()
    const card = (id: string, kind: string, seconds = 300) => ({ t: 'prompt', id, kind, text: 'Card ' + id, options: [{ id: 'yes', label: 'Yes', style: 'primary' }], timeout_seconds: seconds, expires_at: '2000-01-01T00:00:00Z', seq: 0 })
    const page = await scripted(visitor, {
      frames: [
        { t: 'message', id: '1', text: 'Good morning', chunk: { index: 0, total: 1 }, final: true, source: 'cron', job: 'Breakfast', seq: 1 },
        { t: 'media', id: '2', kind: 'hologram', mime: 'application/x-hologram', filename: 'holo.x', caption: '', size: 1, part: 0, parts: 1, final: true, data: 'eA==', seq: 2 },
        card('new', 'of_the_future'), card('gone', 'clarify'), card('theirs', 'exec_approval'), card('late', 'clarify', 0),
        { t: 'prompt_done', prompt_id: 'gone', id: 'gone', option_id: '', expired: true, seq: 3 },
        { t: 'prompt_done', prompt_id: 'theirs', id: 'theirs', option_id: 'yes', expired: false, by: { id: 'other', name: 'Kitchen' }, seq: 4 },
      ],
      answer: (frame) => (frame.t === 'prompt' ? [{ t: 'prompt_done', prompt_id: frame.prompt_id, id: frame.prompt_id, option_id: frame.option_id, expired: false, seq: 5 }] : []),
    })
    await page.getByText('Scheduled: Breakfast').waitFor()
    await page.locator('.file').getByText('holo.x').waitFor()
    await page.locator('[data-card=gone]').getByText('Expired without an answer.').waitFor()
    await page.locator('[data-card=theirs]').getByText('Answered by Kitchen: Yes').waitFor()
    await page.locator('[data-card=late]').getByText('Time is up.').waitFor() // whatever the clocks say
    await page.locator('[data-card=new]').getByRole('button', { name: 'Yes' }).click()
    await page.locator('[data-card=new]').getByText('Answered: Yes').waitFor()
    assert.equal(await page.locator('.card').getByRole('button').count(), 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  it("hides what the agent doesn't support", async () => {
    const visitor = await rig.visit()
    const page = await scripted(visitor, { ready: { capabilities: { text: true, max_media_bytes: 1000, call: [] } } })
    await page.locator('#composer').fill('x')
    await page.locator('#composer').fill('')
    for (const name of ['Attach', 'Record a voice message', 'Stop the agent']) assert.equal(await page.getByRole('button', { name }).count(), 0, name)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('is read-only without the rights to write and answer', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair('Wall')
    const { id } = (JSON.parse(await rig.server.cli('devices', 'list', '--json')) as { id: string; name: string }[]).find(({ name }) => name === 'Wall')!
    await say(page, 'hello')
    await reads(page, 'You said: hello')
    await say(page, '/demo approval')
    const card = page.locator('.card').last()
    await card.getByRole('button', { name: 'Deny' }).waitFor()
    await rig.server.cli('devices', 'rights', id, '-answer')
    await card.getByText("This device can read this card, but can't answer it.").waitFor()
    assert.equal(await card.getByRole('button').count(), 0)
    await page.locator('#composer').waitFor()
    await rig.server.cli('devices', 'rights', id, '-write', '+answer')
    await page.getByText('The owner has made this device read-only.').waitFor()
    assert.equal(await page.locator('#composer').count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Reply' }).count(), 0)
    await card.getByRole('button', { name: 'Deny' }).click()
    await card.getByText('Answered: Deny').waitFor()
    await page.reload()
    await page.getByText('The owner has made this device read-only.').waitFor()
    await rig.server.cli('devices', 'rights', id, '+write')
    await say(page, 'again')
    await reads(page, 'You said: again')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('says that history was lost, and shows nothing twice', async () => {
    const visitor = await rig.visit()
    const message = (id: string, seq: number) => ({ t: 'message', id, text: 'Message ' + id, chunk: { index: 0, total: 1 }, final: true, seq })
    const script = { ready: { resume: { epoch: 'e', from: 1, to: 2, lost: false } }, frames: [message('1', 1), message('2', 2)] }
    const page = await scripted(visitor, script)
    await page.locator('.theirs').nth(1).waitFor()
    script.ready.resume.epoch = 'another'
    script.ready.resume.lost = true
    script.frames.push(message('3', 3))
    await page.reload()
    await page.locator('.theirs').filter({ hasText: 'Message 3' }).waitFor()
    await page.getByText('Some history may be missing or repeated').waitFor()
    assert.equal(await page.locator('.theirs').count(), 3)
    assert.deepEqual(await visitor.leave(), [])
  })
})
