import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { browserRig, DESKTOP, type Host, online, PHONE, reads, say, until, Visitor } from './rig'
import { CuttableNetwork } from './cuttableNetwork'

// The page with the real Hermes. test/e2e starts both, and passes their addresses and what this
// version of Hermes supports.
const { HERMES_JOURNEY: address = '', HERMES_JOURNEY_BINARY: binary = '', HERMES_JOURNEY_NEWER: newer } = process.env

const host: Host = {
  url: address,
  cli: async (...args) => (await promisify(execFile)(binary, args)).stdout,
}

/** What the scripted model writes over time, see fake_model.py. */
const SLOW = Array.from({ length: 16 }, (_, i) => `Line ${String(i + 1).padStart(4, '0')}: the quick brown fox jumps over the lazy dog.`).join('\n')

const theirs = (page: Page, text: string | RegExp) => page.locator('.theirs').filter({ hasText: text })
const mine = (page: Page, text: string) => page.locator('.mine').filter({ hasText: text })
const texts = (page: Page) => page.locator('.row .text').evaluateAll((all) => all.map((text) => (text as HTMLElement).innerText))
/** idle waits until the turn ends: the page no longer offers to stop it. */
const idle = (page: Page) => page.getByRole('button', { name: 'Stop the agent' }).waitFor({ state: 'detached' })
/**
 * underWay waits until a slow turn is visible: by its first words, or by dots if this Hermes sends
 * the text at the end.
 */
const underWay = (page: Page) => (newer ? theirs(page, 'Line 0001').last() : page.locator('.bubble.typing')).waitFor()
const ask = async (page: Page, text: string, answer: string | RegExp) => {
  await say(page, text)
  await reads(page, answer)
  await idle(page)
}

/** received returns the hashes of the files from the agent, as the page stores them. */
async function received(page: Page): Promise<string[]> {
  const files = await page.evaluate(async () => {
    const result = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => {
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error)
    })
    const db = await result(indexedDB.open((await indexedDB.databases())[0]!.name!))
    const blobs = (await result(db.transaction('blobs').objectStore('blobs').getAll(IDBKeyRange.bound('a', 'b')))) as Blob[]
    db.close()
    return Promise.all(blobs.map(async (blob) => [...new Uint8Array(await blob.arrayBuffer())]))
  })
  return files.map((bytes) => createHash('sha256').update(Buffer.from(bytes)).digest('hex'))
}

/** journey runs a test with its own visitor, who always leaves. */
const journey = (name: string, browser: () => Browser, options: BrowserContextOptions, run: (visitor: Visitor, wire: CuttableNetwork) => Promise<void>) =>
  it(name, { timeout: 240_000 }, async () => {
    const wire = await CuttableNetwork.lay(host)
    const visitor = await Visitor.come(browser(), wire, options)
    try {
      await run(visitor, wire)
      assert.deepEqual(await visitor.leave(), [])
    } finally {
      await visitor.context.close()
      await wire.end()
    }
  })

describe('the page with the real Hermes', { skip: !address && 'test/e2e runs this', concurrency: 3 }, () => {
  const rig = browserRig()
  const folder = mkdtempSync(join(tmpdir(), 'hermes-journey-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  journey('chats over a reload, a lost network and another tab', () => rig.browser, PHONE, async (visitor, wire) => {
    const page = await visitor.pair('Pocket')
    assert.equal(page.url(), wire.url) // the code is gone from the address bar
    await ask(page, 'FM:text(**bold** words)', 'bold words')
    await theirs(page, 'bold words').locator('strong').waitFor()

    // The page reloads while the agent writes.
    await say(page, 'FM:slow(4)')
    await underWay(page)
    await page.reload()
    await reads(page, 'Line 0016')
    await idle(page)
    assert.deepEqual(await texts(page), ['FM:text(**bold** words)', 'bold words', 'FM:slow(4)', SLOW])

    // The network fails while the agent writes, and the user keeps writing.
    await say(page, 'Again FM:slow(4)')
    await until(async () => (newer ? (await theirs(page, 'Line 0001').count()) === 2 : (await page.locator('.bubble.typing').count()) === 1), 'the second reply is under way')
    wire.cut()
    await page.locator('[data-state=waiting]').waitFor()
    await say(page, 'FM:text(meanwhile)')
    await mine(page, 'meanwhile').locator('[data-progress=waiting]').waitFor()
    wire.mend()
    await page.getByRole('button', { name: 'Retry now' }).click().catch(() => {}) // it may already be back on its own
    await theirs(page, 'meanwhile').waitFor()
    await mine(page, 'meanwhile').locator('[data-progress=accepted]').waitFor()
    await idle(page)
    const all = await texts(page)
    assert.deepEqual(all.filter((text) => text === SLOW).length, 2)
    assert.deepEqual(all.filter((text) => text === 'meanwhile').length, 1)
    assert.deepEqual(all.filter((text) => text.startsWith('FM:text(meanwhile')).length, 1)
    assert.equal(all.length, 8)

    // Another tab shows the same and takes over.
    const second = await visitor.open()
    await online(second)
    await theirs(second, 'meanwhile').waitFor()
    assert.deepEqual(await texts(second), all)
    await page.getByText('open in another tab').waitFor()
    await ask(second, 'FM:text(in the second tab)', 'in the second tab')
    await page.getByRole('button', { name: 'Use it here' }).click()
    await reads(page, 'in the second tab')
    assert.deepEqual(await texts(page), await texts(second))
  })

  journey('answers approvals and questions, and stops a turn', () => rig.browser, PHONE, async (visitor) => {
    const page = await visitor.pair('Asked')
    const card = (n: number): Locator => page.locator('.card').nth(n)
    const answers = page.locator('.theirs').filter({ hasText: 'tool said:' })
    await say(page, 'FM:slow(30)')
    await underWay(page)
    await page.getByRole('button', { name: 'Stop the agent' }).tap()
    if (newer) await theirs(page, 'Interrupted').waitFor()
    await idle(page)
    await ask(page, 'And now FM:text(after the stop)', 'after the stop')
    assert.equal(await theirs(page, 'Line 0016').count(), 0)

    if (newer) {
      await say(page, 'FM:exec')
      assert.equal(await card(0).locator('.shell').textContent(), 'rm -rf /tmp/x-fake-model')
      await card(0).locator('.options button').first().tap()
      await reads(page, /tool said:.*"exit_code": 0/)
      await card(0).getByText(/^Answered: /).waitFor()
      await idle(page)
      await say(page, 'FM:exec')
      await card(1).locator('.options button').last().tap()
      await reads(page, /tool said:.*BLOCKED/)
      await card(1).getByText(/^Answered: /).waitFor()
      await idle(page)
      await say(page, 'FM:clarify')
      await card(2).getByText('Which color?').first().waitFor()
      await card(2).getByRole('button', { name: 'Blue' }).tap()
      await reads(page, /tool said:.*Blue/)
      await idle(page)
      await say(page, 'FM:clarify')
      await card(3).locator('.options button').last().tap()
      await card(3).getByLabel('Your own answer').fill('Ultramarine, please')
      await card(3).getByRole('button', { name: 'Answer' }).tap()
      await reads(page, /tool said:.*Ultramarine, please/)
      await card(3).getByText('Answered: Ultramarine, please').waitFor()
      await idle(page)
      assert.equal(await answers.count(), 4)
      assert.equal(await page.locator('.card button').count(), 0)
    } else {
      for (const [answer, taken] of [['2', 'Blue'], ['Ultramarine, please', 'Ultramarine, please']] as const) {
        await say(page, 'FM:clarify')
        await reads(page, 'Which color?')
        await say(page, answer)
        await answers.filter({ hasText: taken }).waitFor()
        await idle(page)
      }
      assert.equal(await answers.count(), 2)
    }
  })

  journey('sends files and voice, and gets what arrives while it is closed', () => rig.browser, { ...DESKTOP, permissions: ['microphone'] }, async (visitor) => {
    let page = await visitor.pair('Desk')
    const { id } = await page.evaluate(() => JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string })
    const picture = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
    const hash = createHash('sha256').update(picture).digest('hex')
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.locator('.menu input[type=file]').last().setInputFiles({ name: 'view.png', mimeType: 'image/png', buffer: picture })
    await page.locator('.attached').getByText('view.png').waitFor()
    await say(page, 'FM:echo')
    await reads(page, `image/png ${picture.length} bytes sha256=${hash}`) // the model's input
    await idle(page)

    const path = join(folder, 'sent.png')
    writeFileSync(path, picture)
    await ask(page, `FM:media(${path})`, 'Here is your file.')
    if (newer) {
      const shown = page.locator('.theirs .picture img')
      await until(async () => (await shown.getAttribute('src'))?.startsWith('blob:'), 'the picture is shown')
      assert.deepEqual(await received(page), [hash])
    }

    await page.getByRole('button', { name: 'Record a voice message' }).click()
    await until(() => page.locator('.recorder meter').evaluate((meter) => (meter as HTMLMeterElement).value > 0), 'something is heard')
    await page.getByText(/^0:(0[1-9]|[1-5]\d)$/).first().waitFor() // a busy machine may skip the first second
    await page.getByRole('button', { name: 'Send the recording' }).click()
    await reads(page, 'Hello from the fake model.') // test/e2e checks that the model got the transcript
    await idle(page)

    // The page is closed while the agent writes and a delivery arrives.
    await say(page, 'FM:slow(3)')
    await underWay(page)
    const other = await visitor.context.newPage() // a browser without any page may end
    await page.close()
    await host.cli('deliver', '--to', id, '--id', 'backup-1', '--text', 'The backup is done.')
    await host.cli('deliver', '--to', id, '--id', 'backup-1', '--text', 'The backup is done.')
    page = await visitor.open()
    await other.close()
    await theirs(page, 'The backup is done.').waitFor()
    await reads(page, 'Line 0016')
    await idle(page)
    for (let turn = 0; turn < 2; turn++) {
      assert.equal(await theirs(page, 'The backup is done.').count(), 1)
      assert.equal((await texts(page)).filter((text) => text === SLOW).length, 1)
      await page.reload()
      await online(page)
      await theirs(page, 'The backup is done.').waitFor()
    }
  })
})

// The older Hermes accepts nothing from any device for half a minute after an answer to its
// approval question, so this comes last.
describe('the page with the older Hermes', { skip: (!address && 'test/e2e runs this') || (newer && 'it asks by cards') }, () => {
  const rig = browserRig()

  journey('answers an approval in text', () => rig.browser, PHONE, async (visitor) => {
    const page = await visitor.pair('Words')
    await say(page, 'FM:exec')
    await reads(page, '/approve')
    await reads(page, 'rm -rf /tmp/x-fake-model')
    await say(page, '/deny')
    await reads(page, /tool said:.*BLOCKED/)
    await idle(page)
    assert.equal(await page.locator('.theirs').filter({ hasText: 'tool said:' }).count(), 1)
  })
})
