import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { Hermes } from './hermes'
import { reads, say, Server, Visitor } from './rig'

/** gateway takes screenshots of sessions, models, and jobs. */
export async function gateway(browser: Browser, sizes: Record<string, BrowserContextOptions>, take: (page: Page, size: string, name: string) => Promise<void>): Promise<void> {
  const hermes = await Hermes.start()
  hermes.providers = { custom: ['small-model', 'large-model'], openrouter: ['anthropic/claude-sonnet-4.5', 'google/gemini-2.5-flash', 'openai/gpt-5-mini'] }
  const server = await Server.start(hermes.env)
  hermes.has('Backup of the server', ['Did the backup run tonight?', 'Yes, at 3:12. It has 41 GB.'], { hoursAgo: 4 })
  hermes.has('Birthday of Anna', ['What could we give Anna?', 'She looked at the **blue kettle** twice.'], { source: 'telegram', hoursAgo: 26 })
  const trip = hermes.has('Trip to the sea', ['Where shall we go in May?', 'To **Split**. The night train leaves at nine.', 'And where do we sleep?', 'Two rooms at the harbour are free:\n\n| Room | Price |\n|---|---|\n| with a view | 84 € |\n| to the yard | 61 € |'], { hoursAgo: 2 })
  hermes.used(trip, 'calendar', 'free: 12 to 19 May')
  hermes.say(trip, 'assistant', 'You are both free from 12 to 19 May.', trip.active + 1)
  hermes.has('', ['Which plants need no sun?'], { hoursAgo: 75 })
  hermes.has('Weekly report', ['Sum up the week', 'Three things were done.'], { source: 'cron', hoursAgo: 120 })
  for (const [size, options] of Object.entries(sizes)) {
    const visitor = await Visitor.come(browser, server, options)
    const page = await visitor.pair(size === 'phone' ? 'Phone' : 'Desk')
    const opened = async () => {
      if (size === 'phone') await page.getByRole('button', { name: 'Sessions', exact: true }).click()
    }
    await opened()
    await page.locator('.session-open').filter({ hasText: 'Trip to the sea' }).click()
    await reads(page, 'You are both free')
    await say(page, 'Book the room with the view')
    await reads(page, 'You said: Book the room with the view')
    await page.getByText('Online', { exact: true }).waitFor()
    await page.locator('.theirs').last().getByRole('button', { name: 'Actions' }).click()
    await page.getByText('Tokens in this turn').waitFor()
    await take(page, size, '16-session')
    await page.locator('.theirs').last().getByRole('button', { name: 'Actions' }).click()
    await opened()
    await page.getByRole('button', { name: 'Actions for Birthday of Anna' }).click()
    await take(page, size, '17-sessions')
    await page.getByRole('button', { name: 'Actions for Birthday of Anna' }).click()
    if (size === 'phone') await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    await page.locator('.model').click()
    await page.getByRole('dialog').getByText('openrouter').waitFor()
    await take(page, size, '18-models')
    await page.keyboard.press('Escape')
    await opened()
    await page.getByRole('button', { name: 'Scheduled jobs' }).click()
    const jobs = page.getByRole('dialog', { name: 'Scheduled jobs' })
    if (hermes.jobs.size === 0) {
      await jobs.getByRole('button', { name: 'New job' }).click()
      await jobs.getByLabel('Name').fill('Morning news')
      await jobs.getByLabel('Schedule').fill('0 7 * * *')
      await jobs.getByLabel('What should the agent do?').fill('Sum up the news of the night in five lines.')
      await jobs.getByRole('button', { name: 'Create' }).click()
    }
    await jobs.getByText('Sum up the news').waitFor()
    await jobs.getByRole('button', { name: 'New job' }).click()
    await jobs.getByLabel('Name').fill('Watering')
    await take(page, size, '19-jobs')
    await page.keyboard.press('Escape')
    await page.locator('.route').click()
    await page.getByRole('dialog').locator('pre').waitFor()
    await take(page, size, '20-route')
    await visitor.leave()
  }
  await server.end()
  await hermes.end()
}
