import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { adminLink, noBrowser, PHONE, Server, serverRig, until, Visitor } from './rig'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Finding {
  id: string
  nodes: { target: string[] }[]
}

describe('the audit log in the admin UI', { skip: noBrowser, concurrency: 1 }, () => {
  const rig = serverRig()

  async function accessible(page: Page): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe)
      const findings = await page.evaluate(async () => {
        const { violations } = await (window as unknown as { axe: { run(options: object): Promise<{ violations: Finding[] }> } }).axe.run({ resultTypes: ['violations'] })
        return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ')).join(' | '))
      })
      assert.deepEqual(findings, [], colorScheme)
      assert.ok((await page.evaluate(() => document.querySelector('.admin')?.scrollWidth ?? 0)) <= (page.viewportSize()?.width ?? 0))
    }
  }

  /** enter opens the audit log in the admin UI with a one-time link. */
  async function enter(owner: Visitor, server: Server): Promise<Page> {
    return owner.open((await adminLink(server)) + '#/audit')
  }

  const rows = (page: Page, text: string | RegExp) => page.getByRole('list', { name: 'Audit log' }).getByRole('listitem').filter({ hasText: text })
  const first = (page: Page) => page.getByRole('list', { name: 'Audit log' }).getByRole('listitem').first()

  it('says when no entry matches', async () => {
    const bare = await Server.start()
    const owner = await Visitor.come(rig.browser, bare)
    const page = await enter(owner, bare)
    await first(page).filter({ hasText: 'Login' }).filter({ hasText: 'one-time link' }).waitFor()
    await page.getByRole('combobox', { name: /^Changes to/ }).selectOption({ label: 'Tokens' })
    await page.getByRole('status').filter({ hasText: 'No entries match. Choose another filter.' }).waitFor()
    await accessible(page)
    assert.deepEqual(await owner.leave(), [])
    await bare.end()
  })

  it('shows changes here and on the server live, newest first', async () => {
    const phone = await rig.visit(PHONE)
    await phone.pair('Kitchen')
    const owner = await rig.visit()
    const page = await enter(owner, rig.server)
    await page.getByRole('navigation').getByRole('link', { name: 'Devices' }).click()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Hall \u202elive')
    await page.keyboard.press('Enter')
    await page.getByRole('navigation').getByRole('link', { name: 'Audit log' }).click()
    const renamed = rows(page, 'Device renamed').first()
    await renamed.filter({ hasText: 'Admin UI' }).filter({ hasText: '127.0.0.1' }).waitFor()
    await rig.server.cli('home', 'clear')
    await first(page).filter({ hasText: 'Home channel cleared' }).filter({ hasText: 'Command on the server' }).filter({ hasText: /uid \d+/ }).waitFor()
    await accessible(page)
    await renamed.locator('p', { hasText: /^Hall live$/ }).waitFor()
    assert.ok(!(await page.content()).includes('\u202e'))

    await page.getByRole('combobox', { name: /^Changes to/ }).selectOption({ label: 'Home channel' })
    await until(async () => (await rows(page, 'Device renamed').count()) === 0, 'only one kind is shown')
    await rows(page, 'Home channel cleared').waitFor()
    await page.getByRole('combobox', { name: /^Changes to/ }).selectOption({ label: 'Backups' })
    await page.getByText('No entries match.').waitFor()
    await page.getByRole('combobox', { name: /^Changes to/ }).selectOption('')
    await page.getByRole('combobox', { name: /^Device/ }).selectOption({ index: 1 })
    await renamed.waitFor()
    assert.equal(await rows(page, 'Home channel cleared').count(), 0)
    await page.getByRole('combobox', { name: /^Device/ }).selectOption('')

    await page.getByLabel('Language').selectOption('ru')
    await page.getByRole('heading', { level: 2, name: 'Журнал аудита' }).waitFor()
    await page.getByText('Устройство переименовано').first().waitFor()
    await accessible(page)
    await page.getByLabel('Язык').selectOption('en')
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })

  it('shows older entries on demand, by keyboard, and exports all of them', async () => {
    const phone = await rig.visit(PHONE)
    await phone.pair('Many')
    const id = (JSON.parse(await rig.server.cli('devices', 'list', '--json')) as { id: string; name: string }[]).find(({ name }) => name === 'Many')!.id
    for (let i = 0; i < 120; i++) await rig.server.cli('devices', 'rename', id, `name ${i}`)
    const owner = await rig.visit(PHONE)
    const page = await enter(owner, rig.server)
    await page.locator('p', { hasText: /^name 119$/ }).waitFor()
    assert.equal(await rows(page, /./).count(), 100)
    await page.getByRole('button', { name: 'Show older entries' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('p', { hasText: /^name 3$/ }).waitFor()
    await page.getByRole('button', { name: 'Show older entries' }).waitFor({ state: 'detached' })
    const shown = await rows(page, /./).count()
    // New entries appear above the loaded ones, none twice.
    await rig.server.cli('devices', 'rename', id, 'the newest')
    await first(page).filter({ hasText: 'the newest' }).waitFor()
    assert.equal(await rows(page, /./).count(), shown + 1)

    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export as JSON Lines' }).click()
    const file = await download
    assert.match(file.suggestedFilename(), /^hermes-mobile-audit-\d{4}-\d\d-\d\d\.jsonl$/)
    const lines = readFileSync(await file.path(), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as { number: number; action: string; detail?: string })
    assert.equal(lines.length, shown + 1)
    assert.ok(lines.every(({ number }, i) => i === 0 || number > lines[i - 1]!.number))
    assert.equal(lines.at(-1)!.detail, 'the newest')
    assert.equal((await rig.server.cli('audit', '--json', '--limit', '0')).trimEnd().split('\n').length, lines.length)
    assert.deepEqual(await owner.leave(), [])
    await phone.leave()
  })
})
