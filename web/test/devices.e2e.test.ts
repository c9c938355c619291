import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noBrowser, online, PHONE, reads, say, serverRig, until } from './rig'

describe('new devices', { skip: noBrowser, concurrency: 1 }, () => {
  const rig = serverRig()

  it("shows a notice of a new device, which can't answer yet, and revokes it", async () => {
    const phone = await rig.visit(PHONE)
    const page = await phone.pair('Pocket', 'anna')
    const thief = await rig.visit()
    const strange = await thief.pair('Strange <b>box</b>', 'anna', false)
    const news = page.locator('[data-device-news]').filter({ hasText: 'You have a new device: Strange <b>box</b>.' })
    await news.waitFor()

    await say(strange, '/demo approval')
    const card = strange.locator('[data-card]')
    await card.getByText(/This device is new\. It can answer in/).waitFor()
    assert.equal(await card.getByRole('button').count(), 0)

    // The notice is still there after a reload, and revoking asks for confirmation.
    await page.reload()
    await online(page)
    await news.getByRole('button', { name: 'Revoke Strange' }).click()
    await page.getByRole('dialog').getByText(/loses access immediately/).waitFor()
    await page.keyboard.press('Escape')
    await say(strange, 'still here')
    await news.getByRole('button', { name: 'Revoke Strange' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await strange.getByText('No access').first().waitFor()
    await news.getByText('You revoked this device.').waitFor()
    assert.match(await rig.server.cli('devices', 'list'), /Strange.*revoked/)
    await page.reload()
    await news.getByText('You revoked this device.').waitFor()
    assert.deepEqual(await phone.leave(), [])
    await thief.leave()
  })

  it('shows notices in Russian, and offers no way to revoke an older device', async () => {
    const first = await rig.visit(PHONE)
    const older = await first.pair('Первый', 'bert')
    const second = await rig.visit(PHONE)
    const page = await second.pair('Второй', 'bert')
    await page.evaluate(() => localStorage.setItem('hermes.language', 'ru'))
    await page.reload()
    await online(page)
    await older.locator('[data-device-news]').filter({ hasText: 'Второй' }).waitFor()
    const id = /^(\S+) +Первый /m.exec(await rig.server.cli('devices', 'list'))![1]!
    await rig.server.cli('devices', 'rights', id, '-write')
    await rig.server.cli('devices', 'rights', id, '+write')
    const news = page.locator('[data-device-news]').filter({ hasText: 'У устройства Первый стало больше прав.' })
    await news.getByText('попросите владельца').waitFor()
    assert.equal(await news.getByRole('button').count(), 0)
    await say(older, 'hello')
    await reads(older, 'You said: hello')
    await until(async () => (await older.locator('[data-device-news]').count()) === 1, 'one piece of news')
    assert.deepEqual(await second.leave(), [])
    assert.deepEqual(await first.leave(), [])
  })
})
