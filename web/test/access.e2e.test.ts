import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { DESKTOP, noBrowser, online, PHONE, reads, say, serverRig, TOKEN } from './rig'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Finding {
  id: string
  nodes: { target: string[]; failureSummary: string }[]
}

describe('accessibility', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = serverRig()

  /** accessible checks a screen with axe in light and dark. */
  async function accessible(page: Page, screen: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe)
      const findings = await page.evaluate(async () => {
        const { violations } = await (window as unknown as { axe: { run(options: object): Promise<{ violations: Finding[] }> } }).axe.run({ resultTypes: ['violations'] })
        return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ') + ' ' + node.failureSummary.replace(/\s+/g, ' ')).join(' | '))
      })
      assert.deepEqual(findings, [], `${screen} in ${colorScheme}`)
    }
  }

  it('has no axe violations on any screen of a phone', async () => {
    const visitor = await rig.visit(PHONE)
    const page = await visitor.open()
    await accessible(page, 'welcome by code')
    await page.getByRole('button', { name: 'Address and token' }).click()
    await accessible(page, 'welcome by token')
    await page.getByLabel('Token').fill(TOKEN)
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('button', { name: 'Get an approval code' }).waitFor()
    await accessible(page, 'not approved')
    await page.getByRole('button', { name: 'Get an approval code' }).click()
    const code = await page.getByLabel('Approval code').textContent()
    await accessible(page, 'pairing code')
    await rig.server.cli('pairing', 'approve', code!)
    await reads(page, 'You said: Hello!')
    await say(page, '# Title\n\n- one\n- [x] two\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`code` [link](https://example.com)\n\n```go\nfunc main() {}\n```')
    await reads(page, 'func main')
    await page.locator('#composer').fill('/demo t')
    await page.getByRole('listbox', { name: 'Commands' }).waitFor()
    await accessible(page, 'commands')
    await page.locator('#composer').fill('')
    for (const word of ['tool', 'image', 'voice', 'file', 'approval', 'clarify']) {
      await say(page, '/demo ' + word)
      if (word === 'approval') await page.getByRole('button', { name: 'Allow once' }).waitFor()
      else if (word === 'clarify') await page.getByRole('button', { name: 'CSV' }).waitFor()
      else await reads(page, word === 'tool' ? 'tool: done' : word + ' for you')
      if (word === 'approval') {
        await accessible(page, 'an open card')
        await page.getByRole('button', { name: 'Allow once' }).click()
        await reads(page, 'approval: once')
      }
    }
    await page.getByRole('button', { name: 'CSV' }).click()
    await reads(page, 'clarify: CSV')
    await accessible(page, 'conversation')
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.locator('.menu input[type=file]').last().setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('a') })
    await page.locator('.theirs').last().getByRole('button', { name: 'Actions' }).click()
    await accessible(page, 'an attachment and actions')
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Clear history' }).click()
    await accessible(page, 'settings')
    await page.getByRole('group', { name: 'Clear history' }).getByRole('button', { name: 'Clear history' }).click()
    await page.getByText('What can I do for you?').waitFor()
    await accessible(page, 'empty conversation')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('has no axe violations on a wide screen, online or offline', async () => {
    const visitor = await rig.visit(DESKTOP)
    const page = await visitor.pair('Wide', 'eva')
    await say(page, 'hello')
    await reads(page, 'You said: hello')
    await accessible(page, 'wide conversation')
    const other = await visitor.open()
    await online(other)
    await page.getByText('open in another tab').waitFor()
    await accessible(page, 'replaced')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('works by keyboard alone', async () => {
    const visitor = await rig.visit(DESKTOP)
    const page = await visitor.pair('Keys')
    await page.locator('#composer').focus()
    await page.keyboard.type('one')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('two')
    await page.keyboard.press('Enter')
    await reads(page, 'You said: one')
    assert.equal(await page.locator('.mine .text').textContent(), 'one\ntwo')
    await page.keyboard.type('/demo approval')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Deny' }).focus()
    await page.keyboard.press('Enter')
    await reads(page, 'approval: deny')
    await page.getByRole('button', { name: 'Settings' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    // Every control can be reached by keyboard and shows the focus.
    const lost = await page.evaluate(() => [...document.querySelectorAll<HTMLElement>('button, a, input, textarea, select')].filter((e) => e.tabIndex < 0 && !e.hasAttribute('aria-hidden')).map((e) => e.outerHTML))
    assert.deepEqual(lost, [])
    assert.deepEqual(await visitor.leave(), [])
  })

  it('shows Russian, and text of both directions', async () => {
    const visitor = await rig.visit({ ...PHONE, locale: 'ru-RU' })
    const page = await visitor.open(await rig.server.pairingLink())
    await page.getByRole('button', { name: 'Подключиться' }).click()
    await online(page)
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'ru')
    await page.locator('#composer').fill('שלום עולם')
    await page.getByRole('button', { name: 'Отправить' }).click()
    const text = page.locator('.mine .text')
    assert.equal(await text.evaluate((e) => getComputedStyle(e).direction), 'rtl')
    await page.getByRole('button', { name: 'Настройки' }).click()
    await page.getByLabel('Язык').selectOption('en')
    await page.getByLabel('Language').waitFor()
    await page.getByLabel('Appearance').selectOption('dark')
    await page.reload()
    await online(page)
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
    await page.getByRole('button', { name: 'Settings' }).waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })
})
