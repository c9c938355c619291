import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { browserRig, DESKTOP, type Host, online, reads, say, until, Visitor } from './rig'

// The page with the direct agent and the real Hermes. test/e2e starts both and passes their
// addresses.
const { HERMES_JOURNEY_DIRECT: address = '', HERMES_JOURNEY_BINARY: binary = '', HERMES_JOURNEY_NEWER: newer } = process.env

const host: Host = {
  url: address,
  cli: async (...args) => (await promisify(execFile)(binary, args)).stdout,
}

const texts = (page: Page) => page.locator('.row .text').evaluateAll((all) => all.map((text) => (text as HTMLElement).innerText.trim()))
const pane = (page: Page) => page.getByRole('region', { name: 'Sessions' })
const line = (page: Page, title: string) => pane(page).getByRole('listitem').filter({ has: page.getByText(title, { exact: true }) })
const ask = async (page: Page, text: string, answer: string) => {
  await say(page, text)
  await reads(page, answer)
  await page.getByRole('button', { name: 'Stop the agent' }).waitFor({ state: 'detached' })
}

describe('the page with Hermes’ own API', { skip: !address && 'test/e2e runs this' }, () => {
  const rig = browserRig()

  it('uses sessions, jobs, models, usage and the route', { timeout: 240_000 }, async () => {
    const visitor = await Visitor.come(rig.browser, host, DESKTOP)
    try {
      const page = await visitor.pair('Desk')
      await ask(page, 'FM:text(the first)', 'the first')
      await page.locator('.theirs').last().hover()
      await page.locator('.theirs').last().getByRole('button', { name: 'Actions' }).click()
      await page.getByText(/Tokens in this turn: [\d,]+ in/).waitFor()

      await pane(page).getByRole('button', { name: 'New session' }).click()
      await page.getByText('What can I do for you?').waitFor()
      await ask(page, 'FM:text(the second)', 'the second')
      assert.deepEqual(await texts(page), ['FM:text(the second)', 'the second'])
      const second = pane(page).locator('li.current')
      await second.getByRole('button', { name: /^Actions for/ }).click()
      await second.getByRole('button', { name: 'Rename' }).click()
      await page.getByRole('dialog').getByLabel('Title').fill('The named one')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'The named one' }).waitFor()
      await line(page, 'The named one').getByRole('button', { name: 'Actions for The named one' }).click()
      await line(page, 'The named one').getByRole('button', { name: 'Copy' }).click()
      await until(async () => (await pane(page).getByRole('listitem').count()) === 3, 'the copy is there')

      await page.getByRole('button', { name: 'All messages' }).click()
      await page.locator('.mine').filter({ hasText: 'FM:text(the first)' }).waitFor()
      assert.deepEqual(await texts(page), ['FM:text(the first)', 'the first', 'FM:text(the second)', 'the second'])
      await line(page, 'The named one').locator('.session-open').click()
      await until(async () => (await texts(page)).join() === 'FM:text(the second),the second', 'the history came from Hermes')
      await ask(page, 'FM:text(the third)', 'the third')
      const all = ['FM:text(the second)', 'the second', 'FM:text(the third)', 'the third']
      assert.deepEqual(await texts(page), all)
      await page.reload()
      await online(page)
      await until(async () => (await texts(page)).join() === all.join(), 'it is the same after a reload')

      await page.getByRole('button', { name: 'Scheduled jobs' }).click()
      const jobs = page.getByRole('dialog', { name: 'Scheduled jobs' })
      await jobs.getByRole('button', { name: 'New job' }).click()
      await jobs.getByLabel('Name').fill('Page ' + Date.now())
      await jobs.getByLabel('Schedule').fill('every 2h')
      await jobs.getByLabel('What should the agent do?').fill('FM:text(job)')
      await jobs.getByRole('button', { name: 'Create' }).click()
      await jobs.getByText('every 120m').waitFor()
      await jobs.getByRole('button', { name: 'Pause' }).click()
      await jobs.getByText('Paused', { exact: true }).waitFor()
      await jobs.getByRole('button', { name: 'Resume' }).click()
      await jobs.getByRole('button', { name: 'Pause' }).waitFor()
      await jobs.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('dialog', { name: 'Delete job' }).getByRole('button', { name: 'Delete', exact: true }).click()
      await jobs.getByText('No jobs yet. Create one to have the agent work on a schedule.').waitFor()
      await jobs.getByRole('button', { name: 'Close' }).click()

      await page.locator('.model').click()
      const models = page.getByRole('dialog', { name: 'Models' })
      await models.getByRole('button', { pressed: true }).first().click()
      await models.waitFor({ state: 'hidden' })
      await ask(page, 'FM:text(with the model)', 'with the model')
      await page.locator('.route').click()
      await page.getByRole('dialog').locator('pre').filter({ hasText: newer ? '0.22.' : '0.19.' }).waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()

      for (const left of [2, 1, 0]) {
        const last = pane(page).getByRole('listitem').last()
        await last.getByRole('button', { name: /^Actions for/ }).click()
        await last.getByRole('button', { name: 'Delete' }).click()
        await page.getByRole('dialog', { name: 'Delete session' }).getByRole('button', { name: 'Delete', exact: true }).click()
        await until(async () => (await pane(page).getByRole('listitem').count()) === left, `${left} sessions are left`)
      }
      await pane(page).getByText('No sessions yet', { exact: false }).waitFor()
      assert.deepEqual(await visitor.leave(), [])
    } finally {
      await visitor.context.close()
    }
  })
})
