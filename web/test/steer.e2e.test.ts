import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noBrowser, reads, say, serverRig } from './rig'

describe('a text during a reply', { skip: noBrowser }, () => {
  const rig = serverRig()

  it('is added to the running reply, or sent after it', async () => {
    const visitor = await rig.visit()
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
