import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { MAX_ROWS, GROW_BY } from '../src/view/listRange'
import { FastServer } from './fastServer'
import { prose, remember } from './longHistory'
import { noBrowser, online, PHONE, serverRig, until, Visitor } from './rig'

/**
 * Text that is parsed differently once it continues: lists over blank lines, headings under their
 * text, incomplete code and tables.
 */
const TRICKY = `Intro of [two][r] words
and a line

- one

- two
  with more

  and a paragraph of it
1. first

   second of first

Heading
=======

| a | b |
|---|---|
| 1 | 2 |

    code by spaces

<b>no html</b> <br> here

> quoted

> quoted again

~~~js
const a = \`x\`

const b = 2
~~~
* * *
Last **bold
over lines** end

- [ ] to do
- [x] done`
const NAMED = '\n\n[r]: https://example.com/named "Named"\n\nAfter it.'

interface Seen {
  redraws: number
  frames: number
  touched: number
}

describe('rendering', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = serverRig()

  const drawing = (name: string, run: (page: Page, fast: FastServer) => Promise<void>) =>
    it(name, { timeout: 60_000 }, async () => {
      const fast = await FastServer.before(rig.server)
      const visitor = await Visitor.come(rig.browser, fast, PHONE)
      try {
        const page = await visitor.open(fast.url + '#pair=AAAA-BBBB')
        await page.getByRole('button', { name: 'Connect' }).click()
        await online(page)
        await run(page, fast)
        assert.deepEqual(await visitor.leave(), [])
      } finally {
        await visitor.context.close()
        await fast.end()
      }
    })

  const message = (id: string, text: string, final: boolean, seq: number) => ({ t: 'message', id, text, edit: true, chunk: { index: 0, total: 1 }, final, ...(final && { seq }) })
  /** built returns the elements of a message without the colours of code, which come later. */
  const built = (page: Page, id: string) => page.locator(`[data-id=${id}] .block`).evaluateAll((blocks) => blocks.map((block) => {
    const copy = block.cloneNode(true) as HTMLElement
    copy.querySelectorAll('code').forEach((code) => code.replaceChildren(code.textContent))
    return copy.innerHTML.replace(/ data-highlighted="yes"| hljs/g, '')
  }))

  drawing('keeps the elements of a growing reply, and draws at most once per frame', async (page, fast) => {
    const text = prose(6000)
    fast.say(message('big', text, false, 0))
    await page.locator('[data-id=big] .block').nth(20).waitFor()
    // Complete code gets its colours once.
    const coloured = (all: Element[]) => all.slice(0, -1).every((block) => [...block.querySelectorAll('code[class^=language]')].every((code) => code.childElementCount > 0))
    await until(() => page.locator('[data-id=big] .block').evaluateAll(coloured), 'the code has its colours')
    await page.evaluate(() => {
      const row = document.querySelector('[data-id=big]')!
      const settled = [...row.querySelectorAll('.block')].slice(0, -1)
      const seen: Seen = { redraws: 0, frames: 0, touched: 0 }
      Object.assign(window, { seen, row, settled })
      new MutationObserver((records) => {
        seen.redraws++
        if (records.some(({ target }) => settled.some((block) => block === target || block.contains(target)))) seen.touched++
      }).observe(document.querySelector('.list')!, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ['class', 'id', 'data-id'] })
      const frame = () => {
        seen.frames++
        requestAnimationFrame(frame)
      }
      requestAnimationFrame(frame)
    })
    // Each edit many times, as fast as the socket takes them.
    for (let n = 1; n <= 600; n++) fast.say(message('big', text + ' more'.repeat(n), false, 0))
    await page.locator('[data-id=big]').filter({ hasText: ' more'.repeat(600) }).waitFor()
    const { redraws, frames, touched, same, blocks } = await page.evaluate(() => {
      const { seen, row, settled } = window as unknown as { seen: Seen; row: Element; settled: Element[] }
      const blocks = [...document.querySelectorAll('[data-id=big] .block')]
      return { ...seen, same: document.querySelector('[data-id=big]') === row && settled.every((block, i) => block === blocks[i]), blocks: settled.length }
    })
    assert.ok(blocks >= 20)
    assert.equal(touched, 0)
    assert.ok(same)
    assert.ok(redraws >= 1 && redraws <= frames + 1, `${redraws} redraws in ${frames} frames`)
    fast.say(message('big', text, true, 1)) // the final text wins, also over edits that aren't drawn yet
    await until(async () => (await page.locator('[data-id=big]').textContent())?.includes('more') === false, 'the final text is shown')
    assert.ok(await page.evaluate(() => document.querySelector('[data-id=big]') === (window as unknown as { row: Element }).row))
  })

  drawing('renders a streamed reply like a whole one', async (page, fast) => {
    const whole: Record<string, string> = { tricky: TRICKY, named: TRICKY + NAMED, systems: TRICKY.replaceAll('\n', '\r\n'), prose: prose(5000) }
    let seq = 0
    for (const [id, text] of Object.entries(whole)) {
      for (let at = 1, n = 7; at < text.length; at += 1 + (n % 23), n = (n * 31 + 11) % 101) {
        fast.say(message(id, text.slice(0, at), false, 0))
        if (n % 3 === 0) await page.evaluate(() => new Promise(requestAnimationFrame)) // so that most edits are drawn
      }
      fast.say(message(id, text, true, ++seq))
      fast.say(message(id + '-whole', text, true, ++seq))
      await page.locator(`[data-id=${id}-whole] .block`).first().waitFor()
      const expected = await built(page, id + '-whole')
      assert.ok(expected.length > 5)
      await until(async () => (await page.locator(`[data-id=${id}]`).getByText('writing').count()) === 0, id + ' is final')
      assert.deepEqual(await built(page, id), expected, id)
    }
  })

  drawing('shows a long history in parts, without gaps or missed messages', async (page, fast) => {
    await remember(page, 500)
    await page.reload()
    await online(page)
    await page.getByText('Answer 500 with').waitFor()
    const rows = () => page.locator('.list article').evaluateAll((all) => all.map((row) => Number(row.id.replace(/\D+/g, ''))))
    const complete = async () => {
      const numbers = await rows()
      assert.ok(numbers.length <= MAX_ROWS + GROW_BY, `${numbers.length} rows are in the page`)
      assert.deepEqual(numbers, numbers.map((_, i) => numbers[0]! + i))
      return numbers
    }
    const toEdge = (top: boolean) => page.locator('.list').evaluate((list, top) => list.scrollTo({ top: top ? 0 : list.scrollHeight, behavior: 'instant' }), top)
    await until(async () => {
      await toEdge(true)
      return (await complete())[0] === 1
    }, 'the first message is there')
    assert.equal(await page.getByText('Answer 500 with').count(), 0)
    // New messages are announced and are there at the end.
    fast.say(message('new', 'Something new', true, 1))
    await page.getByRole('button', { name: '1 new message' }).waitFor()
    await until(async () => {
      await toEdge(false)
      return (await page.locator('.theirs').filter({ hasText: 'Something new' }).count()) === 1
    }, 'the newest message is there by scrolling')
    await until(async () => {
      await toEdge(true)
      return (await rows())[0] === 1
    }, 'the first message is there again')
    await page.getByRole('button', { name: /newest message|new message/ }).click()
    await page.locator('.theirs').filter({ hasText: 'Something new' }).waitFor()
    await until(() => page.locator('.list').evaluate((list) => list.scrollHeight - list.scrollTop - list.clientHeight < 5), 'the list is at its end')
    fast.say(message('newer', 'Newer still', true, 2))
    await page.locator('.theirs').filter({ hasText: 'Newer still' }).waitFor()
    await until(() => page.locator('.list').evaluate((list) => list.scrollHeight - list.scrollTop - list.clientHeight < 5), 'the list follows its end')
  })

  drawing('keeps the visible rows in place while older messages load', async (page) => {
    await remember(page, 300)
    await page.reload()
    await online(page)
    await page.getByText('Answer 300 with').waitFor()
    const jumps = await page.locator('.list').evaluate(async (list) => {
      const frame = () => new Promise(requestAnimationFrame)
      const found: string[] = []
      for (let i = 0; i < 120; i++) {
        const { top } = list.getBoundingClientRect()
        const row = [...list.querySelectorAll('article')].find((row) => row.getBoundingClientRect().bottom > top)!
        const before = row.getBoundingClientRect().top
        const by = Math.min(150, list.scrollTop)
        list.scrollBy({ top: -150, behavior: 'instant' })
        await frame()
        await frame()
        const moved = row.getBoundingClientRect().top - before
        if (Math.abs(moved - by) > 2) found.push(`${row.id} moved by ${moved}, not ${by}`)
      }
      return found
    })
    assert.deepEqual(jumps, [])
  })
})
