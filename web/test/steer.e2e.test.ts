import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { launch, noBrowser, reads, say, Server, Visitor } from './rig'

describe('a text during a reply', { skip: noBrowser }, () => {
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

  it('is added to the running reply, or sent after it', async () => {
    const visitor = await Visitor.come(browser, server)
    const page = await visitor.pair()
    const add = page.getByRole('button', { name: 'Add to this reply' })
    await page.locator('#composer').fill('nothing runs')
    assert.equal(await add.count(), 0)
    await say(page, '/demo slow 8')
    await page.getByRole('button', { name: 'Stop the agent' }).waitFor()
    await page.locator('#composer').fill('/demo twice')
    assert.equal(await add.count(), 0, 'a command is never added')
    await page.locator('#composer').fill('its own turn')
    await add.waitFor()
    await page.getByRole('button', { name: 'Send after this reply' }).click()
    await page.locator('#composer').fill('and milk')
    await add.click()
    assert.equal(await page.locator('#composer').inputValue(), '')
    await reads(page, /done after 8 s\s*You added: and milk/)
    await reads(page, 'You said: its own turn')
  })
})
