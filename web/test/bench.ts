import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { FastServer } from './fastServer'
import { GOAL, judge, score } from './lighthouse'
import { prose, remember } from './longHistory'
import { launch, noBrowser, online, PHONE, Server, until, Visitor } from './rig'

// Measures the page in a browser. A line that starts with a tab goes into the table of test/bench:
// figure, measured, expected. It fails if something is lost, never because of a time.

const REPEAT = Number(process.env.BENCH_REPEAT ?? 3)
/**
 * A phone's network: Chromium's Fast 4G and Lighthouse's slow 4G, with the round trip on each
 * request.
 */
const NETWORKS = {
  'fast 4G': { latency: 165, downloadThroughput: (9 * 1024 * 1024) / 8, uploadThroughput: (1.5 * 1024 * 1024) / 8 },
  'slow 4G': { latency: 150, downloadThroughput: (1.6 * 1024 * 1024) / 8, uploadThroughput: (0.75 * 1024 * 1024) / 8 },
}

interface Watch {
  long: number[]
  lcp: number
  shown: number
}

const add = (figure: string, measured: string, expected: string) => console.log(`\t${figure}\t${measured}\t${expected}`)
const middle = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!
const spread = (values: number[], unit: string) => `${middle(values).toFixed(0)} ${unit} (${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}, ${values.length} runs)`

/** watch records long tasks, the largest paint, and when the first message is on the screen. */
async function watch(visitor: Visitor): Promise<void> {
  await visitor.context.addInitScript(() => {
    const seen: Watch = { long: [], lcp: 0, shown: 0 }
    Object.assign(window, { seen })
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => seen.long.push(entry.duration))).observe({ type: 'longtask', buffered: true })
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (seen.lcp = entry.startTime))).observe({ type: 'largest-contentful-paint', buffered: true })
    new MutationObserver((_, observer) => {
      if (!document.querySelector('.row')) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => (seen.shown = performance.now()))) // after that frame is painted
    }).observe(document, { childList: true, subtree: true })
  })
}

const seen = (page: Page) => page.evaluate(() => (window as unknown as { seen: Watch }).seen)
const forget = (page: Page) => page.evaluate(() => ((window as unknown as { seen: Watch }).seen.long = []))
const tasks = (long: number[]) => `longest ${Math.max(0, ...long).toFixed(0)} ms, ${long.filter((ms) => ms > 100).length} over 100 ms`

async function slow(page: Page, visitor: Visitor, network: keyof typeof NETWORKS): Promise<CDPSession> {
  const devtools = await visitor.context.newCDPSession(page)
  await devtools.send('Network.enable')
  await devtools.send('Network.setCacheDisabled', { cacheDisabled: true })
  await devtools.send('Network.emulateNetworkConditions', { offline: false, ...NETWORKS[network] })
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  return devtools
}

async function firstPaint(browser: Browser, server: Server): Promise<void> {
  const visitor = await Visitor.come(browser, server, PHONE)
  await watch(visitor)
  const page = await visitor.pair()
  await remember(page, 200)
  await page.close()
  for (const network of Object.keys(NETWORKS) as (keyof typeof NETWORKS)[]) {
    const first: number[] = []
    const largest: number[] = []
    const meaning: number[] = []
    for (let i = 0; i < REPEAT; i++) {
      const page = await visitor.context.newPage()
      const devtools = await slow(page, visitor, network)
      await devtools.send('Storage.clearDataForOrigin', { origin: server.url, storageTypes: 'service_workers,cache_storage' }) // each load comes from the server
      await page.goto(server.url)
      await online(page)
      await until(async () => (await seen(page)).shown > 0, 'the history is shown')
      first.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]!.startTime))
      meaning.push((await seen(page)).shown)
      largest.push((await seen(page)).lcp)
      await page.close()
    }
    add(`first paint of anything, ${network}, CPU four times slower`, spread(first, 'ms'), '')
    add(`the conversation on the screen, ${network}, CPU four times slower`, spread(meaning, 'ms'), network === 'fast 4G' ? '1500 ms at most' : '')
    add(`largest paint, ${network}, CPU four times slower`, spread(largest, 'ms'), '')
  }
  check(await visitor.leave())
}

async function longHistory(browser: Browser, server: Server): Promise<void> {
  const visitor = await Visitor.come(browser, server, PHONE)
  await watch(visitor)
  let page = await visitor.pair()
  await remember(page, 10_000)
  await page.evaluate(() => navigator.serviceWorker.ready)
  const opened: number[] = []
  for (let i = 0; i < REPEAT; i++) {
    await page.close()
    page = await visitor.open()
    await until(async () => (await seen(page)).shown > 0, 'the history is shown')
    opened.push((await seen(page)).shown)
  }
  add('10,000 messages, opened anew', spread(opened, 'ms'), '300 ms at most')
  await online(page)
  await forget(page)
  const list = page.locator('.list')
  const began = Date.now()
  for (let turn = 0; !(await page.getByText('Question 1: what about it?', { exact: true }).count()); turn++) {
    await list.evaluate(async (list) => {
      for (let i = 0; i < 30; i++) {
        list.scrollBy({ top: -900, behavior: 'instant' })
        await new Promise(requestAnimationFrame)
      }
    })
    if (turn > 2000) throw new Error('the first of 10,000 messages was not reached')
  }
  add('10,000 messages, scrolled to the first', `${tasks((await seen(page)).long)}, ${((Date.now() - began) / 1000).toFixed(0)} s`, 'none over 100 ms')
  add('elements in the page then', String(await page.evaluate(() => document.querySelectorAll('*').length)), '')
  check(await visitor.leave())
}

async function edits(browser: Browser, server: Server): Promise<void> {
  const text = prose(20 << 10)
  for (const rate of [1, 4]) {
    const fast = await FastServer.before(server)
    const visitor = await Visitor.come(browser, fast, PHONE)
    await watch(visitor)
    const page = await visitor.open(fast.url + '#pair=AAAA-BBBB')
    await page.getByRole('button', { name: 'Connect' }).click()
    await online(page)
    const step = (n: number, final = false) => fast.say({ t: 'message', id: 'big', text: text + '\n\nand step ' + n, edit: true, chunk: { index: 0, total: 1 }, final, ...(final && { seq: 1 }) })
    step(0)
    await page.locator('.theirs').filter({ hasText: 'and step 0' }).waitFor()
    const devtools = await visitor.context.newCDPSession(page)
    await devtools.send('Emulation.setCPUThrottlingRate', { rate })
    await page.evaluate(() => {
      const measured = { inputs: [] as number[], frames: 0 }
      Object.assign(window, { measured })
      document.querySelector('#composer')!.addEventListener('input', (event) => requestAnimationFrame(() => setTimeout(() => measured.inputs.push(performance.now() - event.timeStamp))))
      const frame = () => {
        measured.frames++
        requestAnimationFrame(frame)
      }
      requestAnimationFrame(frame)
    })
    await page.locator('#composer').focus()
    await forget(page)
    let n = 0
    const typed = 'the quick brown fox jumps over the lazy dog while the agent writes a very long reply'
    const began = Date.now()
    const writing = setInterval(() => {
      for (const due = ((Date.now() - began) * 60) / 1000; n < due; ) step(++n)
    }, 1000 / 60)
    for (const letter of typed) {
      await devtools.send('Input.dispatchKeyEvent', { type: 'char', text: letter })
      await sleep(60)
    }
    const seconds = (Date.now() - began) / 1000
    clearInterval(writing)
    step(++n, true)
    await page.locator('.theirs').filter({ hasText: 'and step ' + n }).waitFor()
    if ((await page.locator('#composer').inputValue()) !== typed) throw new Error('of what was typed came ' + (await page.locator('#composer').inputValue()))
    const { inputs, frames } = await page.evaluate(() => (window as unknown as { measured: { inputs: number[]; frames: number } }).measured)
    const sped = rate === 1 ? '' : ', CPU four times slower'
    add(`typing during ${(n / seconds).toFixed(0)} edits a second of 20 KiB${sped}`, `${typed.length} of ${typed.length} keys, to the screen ${middle(inputs).toFixed(0)} ms, at most ${Math.max(...inputs).toFixed(0)} ms`, 'none lost')
    add(`frames and tasks meanwhile${sped}`, `${(frames / seconds).toFixed(0)} frames a second, ${tasks((await seen(page)).long)}`, '')
    check(await visitor.leave())
    await fast.end()
  }
}

async function scores(): Promise<void> {
  const categories = ['performance', 'accessibility', 'best-practices'] as const
  const { results, trouble } = await judge([...Array<'mobile'>(REPEAT).fill('mobile'), 'desktop'], categories)
  for (const category of categories) {
    const phone = results.slice(0, REPEAT).map((result) => score(result, category))
    add(`Lighthouse, ${category.replace('-', ' ')}`, `phone ${middle(phone)} (${Math.min(...phone)} to ${Math.max(...phone)}, ${REPEAT} runs), desktop ${score(results.at(-1)!, category)}`, `${GOAL} at least`)
  }
  if (process.env.BENCH_AUDITS) {
    for (const { audits } of results.slice(-2)) for (const { id, score, displayValue } of Object.values(audits)) if (score !== null && score < 1) console.log(`  ${id} ${score} ${displayValue ?? ''}`)
  }
  check(trouble)
}

function check(trouble: string[]): void {
  if (trouble.length > 0) throw new Error(trouble.join('\n'))
}

if (noBrowser) {
  console.log('  left out: ' + noBrowser)
} else {
  const server = await Server.start()
  const browser = await launch()
  try {
    await firstPaint(browser, server)
    await longHistory(browser, server)
    await edits(browser, server)
    await scores()
  } finally {
    await browser.close()
    await server.end()
  }
}
