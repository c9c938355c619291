import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { Hermes } from './hermes'
import { browserRig, DESKTOP, noBrowser, online, PHONE, reads, say, Server, until, Visitor } from './rig'

const texts = (page: Page) => page.locator('.row .text').evaluateAll((all) => all.map((text) => (text as HTMLElement).innerText.trim()))
const pane = (page: Page) => page.getByRole('region', { name: 'Sessions' })
const line = (page: Page, title: string) => pane(page).getByRole('listitem').filter({ hasText: title })
const choose = (page: Page, title: string) => line(page, title).locator('.session-open').click()
const confirm = (page: Page, button: string) => page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click()

describe('Hermes sessions', { skip: noBrowser, concurrency: 3 }, () => {
  const rig = browserRig()

  /** visit runs a test with its own gateway and server. */
  const visit = (name: string, options: BrowserContextOptions, run: (visitor: Visitor, hermes: Hermes) => Promise<void>, env: Record<string, string> = {}) =>
    it(name, { timeout: 120_000 }, async () => {
      const hermes = await Hermes.start()
      const server = await Server.start({ ...hermes.env, ...env })
      const visitor = await Visitor.come(rig.browser, server, options)
      try {
        await run(visitor, hermes)
        assert.deepEqual(await visitor.leave(), [])
      } finally {
        await visitor.context.close()
        await server.end()
        await hermes.end()
      }
    })

  visit('opens a session with its history, continues it, and restores it after a reload', DESKTOP, async (visitor, hermes) => {
    const trip = hermes.has('Trip to the sea', ['Where shall we go?', 'To **Split**, by train.'])
    hermes.used(trip, 'terminal', 'the timetable')
    hermes.say(trip, 'assistant', 'The train leaves at nine.', trip.active + 1)
    const page = await visitor.pair()
    await say(page, 'before all that')
    await reads(page, 'You said: before all that')
    await choose(page, 'Trip to the sea')
    await page.locator('.theirs').filter({ hasText: 'leaves at nine' }).waitFor()
    assert.deepEqual(await texts(page), ['Where shall we go?', 'To Split, by train.', 'The train leaves at nine.'])
    await page.locator('.tools summary').click()
    await page.locator('.tools pre').filter({ hasText: /^the timetable$/ }).waitFor()
    await line(page, 'Trip to the sea').getByText('Current', { exact: true }).waitFor()
    assert.equal(await pane(page).locator('[aria-current=true]').count(), 1)

    await say(page, 'And back?')
    await reads(page, 'You said: And back?')
    assert.equal(hermes.runs.at(-1)!.session_id, trip.id)
    const all = ['Where shall we go?', 'To Split, by train.', 'The train leaves at nine.', 'And back?', 'You said: And back?']
    assert.deepEqual(await texts(page), all)
    await page.reload()
    await online(page)
    await page.locator('.theirs').filter({ hasText: 'by train' }).waitFor()
    assert.deepEqual(await texts(page), all) // the history ends where this device starts

    // Everything of this device is still there, once.
    await page.getByRole('button', { name: 'All messages' }).click()
    await page.locator('.mine').filter({ hasText: 'before all that' }).waitFor()
    assert.deepEqual(await texts(page), ['before all that', 'You said: before all that', 'And back?', 'You said: And back?'])
    await choose(page, 'Trip to the sea')
    await page.locator('.theirs').filter({ hasText: 'by train' }).waitFor()
    assert.deepEqual(await texts(page), all) // now all of it comes from the gateway

    // A session that was deleted elsewhere is no longer shown.
    hermes.sessions.delete(trip.id)
    await page.reload()
    await page.locator('.mine').filter({ hasText: 'before all that' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'All messages' }).count(), 0)
  })

  visit('loads a long history in pages while scrolling up, each message once', PHONE, async (visitor, hermes) => {
    hermes.has('Long', Array.from({ length: 240 }, (_, i) => `Message ${i + 1}.`))
    const page = await visitor.pair()
    await page.getByRole('button', { name: 'Sessions', exact: true }).click()
    await choose(page, 'Long')
    await page.locator('.row').filter({ hasText: 'Message 240.' }).waitFor()
    assert.equal(await page.getByRole('dialog', { name: 'Sessions' }).count(), 0) // the drawer closed
    const seen = new Set<string>()
    await until(async () => {
      for (const text of await texts(page)) seen.add(text)
      await page.locator('.list').evaluate((list) => list.scrollTo({ top: 0 }))
      return seen.has('Message 1.')
    }, 'the first message is shown')
    assert.equal(seen.size, 240)
    const shown = await texts(page)
    assert.equal(new Set(shown).size, shown.length)
    assert.deepEqual(shown, Array.from(shown, (_, i) => `Message ${i + 1}.`))
  })

  visit('creates, renames, copies and deletes sessions', DESKTOP, async (visitor, hermes) => {
    hermes.has('Taken', ['x', 'y'])
    const page = await visitor.pair()
    await say(page, 'first')
    await reads(page, 'You said: first')
    await pane(page).getByRole('button', { name: 'New session' }).click()
    await page.getByText('What can I do for you?').waitFor()
    await say(page, 'second')
    await reads(page, 'You said: second')
    assert.notEqual(hermes.runs[0]!.session_id, hermes.runs[1]!.session_id)
    assert.deepEqual(await texts(page), ['second', 'You said: second'])

    const second = line(page, 'second')
    await second.getByRole('button', { name: 'Actions for second' }).click()
    await second.getByRole('button', { name: 'Rename' }).click()
    const title = page.getByRole('dialog').getByLabel('Title')
    await title.fill('Taken')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText("Title 'Taken' is already in use", { exact: false }).waitFor()
    await title.fill('Garden')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Garden' }).waitFor()

    await line(page, 'Garden').getByRole('button', { name: 'Actions for Garden' }).click()
    await line(page, 'Garden').getByRole('button', { name: 'Copy' }).click()
    await line(page, 'Garden #2').waitFor()
    assert.equal(await line(page, 'Garden #2').locator('[aria-current]').count(), 0)

    await page.reload()
    await online(page)
    await line(page, 'Garden #2').getByRole('button', { name: 'Actions for Garden #2' }).click()
    await line(page, 'Garden #2').getByRole('button', { name: 'Delete' }).click()
    await confirm(page, 'Cancel')
    assert.equal(await line(page, 'Garden #2').count(), 1)
    await line(page, 'Garden #2').getByRole('button', { name: 'Delete' }).click()
    await confirm(page, 'Delete')
    await line(page, 'Garden #2').waitFor({ state: 'detached' })

    // Deleting the shown session shows this device's items, and the next message starts another
    // session.
    await line(page, 'Garden').getByRole('button', { name: 'Actions for Garden' }).click()
    await line(page, 'Garden').getByRole('button', { name: 'Delete' }).click()
    await confirm(page, 'Delete')
    await page.locator('.mine').filter({ hasText: 'first' }).waitFor()
    await say(page, 'third')
    await reads(page, 'You said: third')
    assert.equal(new Set(hermes.runs.map((run) => run.session_id)).size, 3)
    assert.deepEqual(await texts(page), ['first', 'You said: first', 'second', 'You said: second', 'third', 'You said: third'])
  })

  visit('searches sessions and lists them in pages', DESKTOP, async (visitor, hermes) => {
    for (let i = 1; i <= 45; i++) hermes.has(`Session ${i}`, [i === 40 ? 'about tomatoes' : 'about nothing', 'yes'], { hoursAgo: i })
    const page = await visitor.pair()
    await line(page, 'Session 30').waitFor()
    assert.equal(await pane(page).getByRole('listitem').count(), 30)
    await pane(page).getByRole('searchbox').fill('TOMATOES about')
    await pane(page).getByText('No matching session in this list.').waitFor()
    await pane(page).getByRole('button', { name: 'Search older sessions' }).click()
    await line(page, 'Session 40').waitFor()
    assert.equal(await pane(page).getByRole('listitem').count(), 1)
    await pane(page).getByRole('searchbox').fill('')
    await line(page, 'Session 45').waitFor()
    assert.equal(await pane(page).getByRole('listitem').count(), 45)
    assert.equal(await pane(page).getByRole('button', { name: 'Show older sessions' }).count(), 0)
  })

  visit('says when a typed command changes the session', DESKTOP, async (visitor, hermes) => {
    hermes.has('Old', ['once', 'indeed'])
    const page = await visitor.pair()
    await choose(page, 'Old')
    await reads(page, 'indeed')
    await say(page, '/new')
    await page.getByText('Your next message', { exact: false }).waitFor()
    await say(page, 'fresh')
    await reads(page, 'You said: fresh')
    assert.equal(hermes.sessions.get(hermes.runs.at(-1)!.session_id as string)!.title, null)
    await page.getByText('Your next message goes to “fresh”.').waitFor()
    await page.getByRole('button', { name: 'Open it' }).click()
    await until(async () => (await texts(page)).join() === 'fresh,You said: fresh', 'the new session is shown')
  })

  visit('shows what the gateway rejects, and changes nothing', DESKTOP, async (visitor, hermes) => {
    const gone = hermes.has('Gone', ['a', 'b'])
    const busy = hermes.has('Busy', ['c', 'd'])
    const page = await visitor.pair()
    await say(page, 'here')
    await reads(page, 'You said: here')
    await line(page, 'Gone').waitFor()
    // The gateway rejects it, rather than losing it, because the list may be loaded again before
    // the click.
    hermes.instead = (request) => (request.includes(gone.id) ? { status: 404, message: 'Session not found' } : undefined)
    await choose(page, 'Gone')
    await pane(page).getByRole('alert').getByText('not found in this conversation').waitFor()
    assert.deepEqual(await texts(page), ['here', 'You said: here'])
    hermes.instead = (request) => (request.startsWith('DELETE ') ? { status: 409, message: 'The session has an active turn' } : undefined)
    await line(page, 'Busy').getByRole('button', { name: 'Actions for Busy' }).click()
    await line(page, 'Busy').getByRole('button', { name: 'Delete' }).click()
    await confirm(page, 'Delete')
    await page.getByRole('dialog').getByText('The session has an active turn').waitFor()
    assert.ok(hermes.sessions.has(busy.id))
  })

  visit('hides the sessions and jobs of other conversations', DESKTOP, async (visitor, hermes) => {
    hermes.has('Of somebody else', ['a', 'b'])
    const page = await visitor.pair()
    await pane(page).getByText('No sessions yet').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Scheduled jobs' }).count(), 0)
    await say(page, 'mine')
    await reads(page, 'You said: mine')
    await line(page, 'mine').waitFor()
    assert.equal(await pane(page).getByRole('listitem').count(), 1)
  }, { MOBILE_API_SESSIONS: 'own' })
})
