import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { launch, noBrowser, online, PHONE, reads, say, Server, until, Visitor } from './rig'

describe('the conversation', { skip: noBrowser, concurrency: 2 }, () => {
  let server: Server
  let browser: Browser
  before(async () => {
    server = await Server.start()
    browser = await launch()
  })
  after(async () => {
    await browser?.close()
    await server?.end()
  })

  it('starts with a pairing link and removes its code from the address bar', async () => {
    const visitor = await Visitor.come(browser, server, PHONE)
    const page = await visitor.open(await server.pairingLink())
    assert.equal(page.url(), server.url)
    await page.getByLabel('Device name').fill('Pocket')
    await page.getByRole('button', { name: 'Connect' }).click()
    await online(page)
    assert.match(await server.cli('devices', 'list'), /Pocket/)
    await say(page, 'hello there')
    await reads(page, 'You said: hello there')
    await page.locator('.mine [data-progress=accepted]').waitFor()
    // On a phone Enter starts a new line.
    await page.locator('#composer').fill('one')
    await page.keyboard.press('Enter')
    assert.equal(await page.locator('#composer').inputValue(), 'one\n')
    // The owner sees that the device showed the delivery.
    const { id } = await page.evaluate(() => JSON.parse(localStorage.getItem('hermes.profile')!) as { id: string })
    await server.cli('deliver', '--to', id, '--text', 'The backup is done.')
    await reads(page, 'The backup is done.')
    await until(async () => /seen/.test(await server.cli('deliveries')), 'the delivery was seen')
    // An unsent draft survives a reload.
    await page.locator('#composer').fill('half a thought')
    await page.reload()
    await online(page)
    assert.equal(await page.locator('#composer').inputValue(), 'half a thought')
    // The page explains that a used code is rejected.
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Pairing link or code').fill('AAAA-BBBB')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('alert').filter({ hasText: 'This code is wrong' }).waitFor()
    await until(() => page.evaluate(async () => (await indexedDB.databases()).length === 0), 'nothing is kept')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('streams a reply without touching finished blocks', async () => {
    const visitor = await Visitor.come(browser, server)
    const page = await visitor.pair()
    await say(page, 'first\n\n- a\n- b')
    await reads(page, /You said: first/)
    await page.evaluate(() => {
      // Attributes that would be gone if the elements were recreated.
      document.querySelectorAll('.block').forEach((block) => ((block as HTMLElement & { kept?: boolean }).kept = true))
    })
    await say(page, '/demo stream 120')
    await page.locator('.theirs').filter({ hasText: 'w3' }).waitFor()
    await page.evaluate(() => ((document.querySelector('.theirs:last-of-type .block') as HTMLElement & { kept?: boolean }).kept = true))
    await reads(page, 'w120')
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.block')].map((block) => (block as HTMLElement & { kept?: boolean }).kept)), [true, true, true])
    assert.deepEqual(await visitor.leave(), [])
  })

  it('continues a stream after a reload and shows everything once', async () => {
    const visitor = await Visitor.come(browser, server)
    const page = await visitor.pair()
    await say(page, '/demo stream 400')
    await page.locator('.theirs').filter({ hasText: 'w20' }).waitFor()
    await page.reload()
    await reads(page, 'w400')
    assert.equal(await page.locator('.theirs').count(), 1)
    assert.equal(await page.locator('.mine').count(), 1)
    await page.reload()
    await reads(page, 'w400')
    assert.equal(await page.locator('.row').count(), 2)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('shows formatting, copies code, and shows a rewritten reply', async () => {
    const visitor = await Visitor.come(browser, server, { locale: 'en-GB', viewport: { width: 1280, height: 800 }, permissions: ['clipboard-read', 'clipboard-write'] })
    const page = await visitor.pair()
    await say(page, 'Look:\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n**bold** [site](https://example.com) ![far](https://example.com/x.png)')
    await reads(page, 'bold')
    const reply = page.locator('.theirs').last()
    await reply.locator('table td').first().waitFor()
    await reply.locator('code .hljs-keyword').first().waitFor()
    await reply.getByRole('button', { name: 'Copy' }).first().click()
    await reply.getByRole('button', { name: 'Copied' }).waitFor()
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'func main() {}')
    assert.equal(await reply.locator('img').count(), 0)
    assert.equal(await reply.getByRole('link', { name: 'site' }).getAttribute('rel'), 'noopener noreferrer')
    await say(page, '/demo rewrite')
    await reads(page, 'three two one.')
    assert.equal(await page.locator('.theirs').filter({ hasText: 'one two three' }).count(), 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('replies to a message, jumps to it, and follows new messages only at the end', async () => {
    const visitor = await Visitor.come(browser, server, { viewport: { width: 390, height: 600 }, locale: 'en-GB' })
    const page = await visitor.pair()
    await say(page, 'the very first')
    await reads(page, 'You said: the very first')
    await say(page, '/demo long 6000')
    await page.locator('.theirs').nth(1).waitFor()
    const first = page.locator('.theirs').first()
    await page.locator('.list').evaluate((list) => list.scrollTo({ top: 0 }))
    await first.getByRole('button', { name: 'Actions' }).click()
    await first.getByRole('button', { name: 'Reply' }).click()
    await say(page, 'about that')
    const answer = page.locator('.mine').filter({ hasText: 'about that' })
    await answer.locator('.quote').filter({ hasText: 'You said: the very first' }).waitFor()
    await reads(page, 'You said: about that')
    await answer.locator('.quote').click()
    await until(() => first.evaluate((row) => row.getBoundingClientRect().top > 0 && row.contains(document.activeElement)), 'the quoted message is shown')
    await page.getByRole('button', { name: /newest|new message/ }).click()
    await until(() => page.locator('.list').evaluate((list) => list.scrollHeight - list.scrollTop - list.clientHeight < 5), 'the list is at its end')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('stops a turn, folds tool calls, marks an interrupted reply', async () => {
    const visitor = await Visitor.come(browser, server)
    const page = await visitor.pair()
    await say(page, '/demo slow 60')
    await page.getByRole('button', { name: 'Stop the agent' }).click()
    await page.locator('.theirs').filter({ hasText: 'Interrupted' }).waitFor()
    await say(page, '/demo tool')
    await reads(page, 'tool: done')
    const tools = page.locator('details.tools')
    assert.equal(await tools.evaluate((details) => (details as HTMLDetailsElement).open), false)
    await tools.locator('summary').click()
    await tools.getByText('terminal', { exact: true }).waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })

  it("shares a conversation: messages from another device are the user's own", async () => {
    const one = await Visitor.come(browser, server)
    const two = await Visitor.come(browser, server)
    const first = await one.pair('Laptop', 'anna')
    const second = await two.pair('Tablet', 'anna')
    const devices = JSON.parse(await server.cli('devices', 'list', '--json')) as { devices?: { id: string; name: string }[] }
    const list = devices.devices ?? (devices as unknown as { id: string; name: string }[])
    const id = (name: string) => list.find((device) => device.name === name)!.id
    await server.cli('devices', 'join', id('Tablet'), id('Laptop'))
    await until(() => second.evaluate(() => document.querySelector('[data-state=online]') !== null), 'the tablet is back')
    await say(first, 'from the laptop')
    await second.locator('.mine').filter({ hasText: 'From Laptop' }).filter({ hasText: 'from the laptop' }).waitFor()
    await reads(second, 'You said: from the laptop')
    await first.getByRole('button', { name: 'Attach' }).click()
    await first.locator('.menu input[type=file]').last().setInputFiles({ name: 'shared.txt', mimeType: 'text/plain', buffer: Buffer.from('for both') })
    await first.getByRole('button', { name: 'Send' }).click()
    const file = second.locator('.mine').filter({ hasText: 'shared.txt' }).getByRole('link')
    await until(async () => (await file.getAttribute('href'))?.startsWith('blob:'), 'the file of the other device is kept here') // its link expires
    await say(first, '/demo approval')
    await second.getByRole('button', { name: 'Deny' }).click()
    await first.locator('.card').getByText('Answered by Tablet: Deny').waitFor()
    await second.locator('.card').getByText('Answered: Deny').waitFor()
    assert.deepEqual(await one.leave(), [])
    assert.deepEqual(await two.leave(), [])
  })
})
