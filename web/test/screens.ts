import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { gateway } from './screens.gateway'
import { PushService, Subscriber } from './pushService'
import { adminLink, freePort, launch, online, reads, say, Server, TOKEN, until, Visitor } from './rig'

const folder = join(process.cwd(), '../doc/screens')
mkdirSync(folder, { recursive: true })

const PLAN = `Here is the plan for **Saturday**:

1. Take the *early* train
2. Lunch at the harbour
3. Walk along the coast

| Hour | Place | Weather |
|------|-------|---------|
| 9:40 | Station | 14 °C |
| 13:00 | Harbour | 18 °C |

\`\`\`python
def pack(items):
    return sorted(set(items))  # nothing twice
\`\`\`
Shall I book it?`

const service = await PushService.start()
const server = await Server.start({ MOBILE_PUSH_CONTACT: 'mailto:owner@example.com', MOBILE_PUSH_HOSTS: PushService.host })
const browser = await launch()

/** take takes screenshots in light and dark. */
async function take(page: Page, size: string, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`), animations: 'disabled', caret: 'hide' })
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
}

const sizes: Record<string, BrowserContextOptions> = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, locale: 'en-GB' },
  wide: { viewport: { width: 1280, height: 800 }, locale: 'en-GB' },
}
for (const [size, options] of Object.entries(sizes)) {
  const visitor = await Visitor.come(browser, server, options)
  await (await Subscriber.come(visitor, service)).permit()
  const page = await visitor.open()
  await take(page, size, '01-welcome')
  await page.getByRole('button', { name: 'Address and token' }).click()
  await page.getByLabel('Token').fill(TOKEN)
  await page.getByLabel('Device name').fill(size === 'phone' ? 'Phone' : 'Desk')
  await page.getByRole('button', { name: 'Connect' }).click()
  await page.getByRole('button', { name: 'Get an approval code' }).click()
  const code = await page.getByLabel('Approval code').textContent()
  await take(page, size, '02-pairing-code')
  await server.cli('pairing', 'approve', code!)
  await reads(page, 'You said: Hello!')
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('button', { name: 'Clear history' }).click()
  await page.getByRole('group', { name: 'Clear history' }).getByRole('button', { name: 'Clear history' }).click()
  await page.locator('.toast').getByRole('button', { name: 'Close' }).click()
  await page.getByText('What can I do for you?').waitFor()
  await take(page, size, '03-empty')
  const { id } = await page.evaluate(() => JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string })
  await server.cli('deliver', '--to', id, '--text', PLAN)
  await reads(page, 'Shall I book it?')
  await page.locator('.hljs-keyword').first().waitFor()
  await say(page, 'Yes, for two please. And send me a picture of the harbour.')
  await reads(page, 'You said: Yes, for two please. And send me a picture of the harbour.')
  await idle(page)
  await take(page, size, '04-chat')
  await say(page, '/demo image')
  await reads(page, 'image for you')
  await say(page, '/demo voice')
  await reads(page, 'voice for you')
  await say(page, '/demo file')
  await reads(page, 'file for you')
  await idle(page)
  await take(page, size, '05-files')
  await say(page, '/demo tool')
  await reads(page, 'tool: done')
  await say(page, '/demo approval')
  await page.getByRole('button', { name: 'Allow once' }).waitFor()
  await take(page, size, '06-approval')
  await page.getByRole('button', { name: 'Allow once' }).click()
  await reads(page, 'approval: once')
  await say(page, '/demo clarify')
  await page.getByRole('button', { name: 'Something else' }).click()
  await page.getByLabel('Your own answer').fill('a spreadsheet')
  await take(page, size, '07-question')
  await page.getByRole('button', { name: 'Answer' }).click()
  await reads(page, 'clarify: a spreadsheet')
  await idle(page)
  await page.locator('.theirs').last().getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('button', { name: 'Reply' }).click()
  await page.getByRole('button', { name: 'Attach' }).click()
  await page.locator('.menu input[type=file]').last().setInputFiles({ name: 'budget.xlsx', mimeType: 'application/vnd.ms-excel', buffer: Buffer.alloc(48_000, 1) })
  await page.locator('#composer').fill('Like this one')
  await page.locator('.theirs').last().getByRole('button', { name: 'Actions' }).click()
  await take(page, size, '08-writing')
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByLabel('Notify me').check()
  await page.locator('[data-notify=on]').waitFor()
  await page.getByLabel('Quiet hours').check()
  await page.getByRole('region', { name: 'Notifications' }).scrollIntoViewIfNeeded()
  await take(page, size, '09-settings')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Remove budget.xlsx' }).click()
  await page.getByRole('button', { name: 'Cancel reply' }).click()
  await page.locator('#composer').fill('')
  await server.down('SIGKILL')
  await page.locator('[data-state=waiting]').waitFor()
  await say(page, 'Are you still there?')
  await page.getByText(/not sent yet/).waitFor()
  await take(page, size, '10-no-connection')
  await server.up()
  await visitor.leave()
}
await gateway(browser, sizes, take)
await owner()
await browser.close()
await server.end()
await service.end()

/**
 * owner fills the admin UI of a server in use: devices, a user who waits for approval, deliveries,
 * and an issue.
 */
async function owner(): Promise<void> {
  const used = await Server.start({ MOBILE_PUBLIC_URL: `https://127.0.0.1:${await freePort()}` })
  const [kitchen, pocket, asking] = [await Visitor.come(browser, used), await Visitor.come(browser, used, sizes.phone), await Visitor.come(browser, used, sizes.phone)]
  const link = async () => (await used.pairingLink()).replace(/^https:[^#]*\/?#/, used.url + '#')
  const ids: string[] = []
  for (const [visitor, name, user] of [[kitchen, 'Kitchen tablet', 'anna'], [pocket, 'Pocket', 'anna']] as const) {
    const page = await visitor.open(await link())
    await page.getByLabel('Device name').fill(name)
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('User').fill(user)
    await page.getByRole('button', { name: 'Connect' }).click()
    await online(page)
    await say(page, 'Hello')
    await reads(page, 'You said: Hello')
    ids.push(await page.evaluate(() => (JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string }).id))
  }
  const page = await asking.open(used.url)
  await page.getByRole('button', { name: 'Address and token' }).click()
  await page.getByLabel('Address').fill(used.url.replace('http', 'ws') + 'ws')
  await page.getByLabel('Token').fill(TOKEN)
  await page.getByLabel('Device name').fill('Visitor')
  await page.getByRole('button', { name: 'Connect' }).click()
  await page.getByRole('button', { name: 'Get an approval code' }).click()
  await page.getByLabel('Approval code').waitFor()
  await used.cli('home', 'set', ids[0]!)
  await used.cli('deliver', '--to', ids[0]!, '--id', 'backup-2026-11-29', '--text', 'The backup is done.')
  await kitchen.context.pages()[0]!.locator('.theirs').filter({ hasText: 'The backup is done.' }).waitFor()
  await pocket.context.close()
  await until(async () => (JSON.parse(await used.cli('devices', 'list', '--json')) as { id: string; connected: boolean }[]).some(({ id, connected }) => id === ids[1] && !connected), 'the phone is away')
  await used.cli('deliver', '--to', ids[1]!, '--id', 'weather-2026-11-30', '--text', 'Rain at eight.')
  await used.cli('deliver', '--to', ids[1]!, '--id', 'news-2026-11-30', '--text', 'News')
  for (const [size, options] of Object.entries(sizes)) {
    const visitor = await Visitor.come(browser, used, options)
    const page = await visitor.open(await adminLink(used))
    // The doctor first: the overview shows the number of its issues.
    for (const [number, place] of [[15, 'Doctor'], [11, 'Overview'], [12, 'Devices'], [13, 'Users'], [14, 'Deliveries']] as const) {
      await page.getByRole('navigation').getByRole('link', { name: place }).click()
      await page.getByRole('heading', { level: 2, name: place }).waitFor()
      await page.locator('[aria-busy=true]').waitFor({ state: 'detached' })
      if (place === 'Doctor') await page.getByText('What to do:').first().waitFor()
      await take(page, size, `${number}-owner-${place.toLowerCase()}`)
    }
    await visitor.leave()
  }
  await used.end()
}

async function idle(page: Page): Promise<void> {
  await page.getByText('Online', { exact: true }).waitFor()
}
