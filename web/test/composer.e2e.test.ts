import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { ThrottledNetwork } from './throttledNetwork'
import { DESKTOP, noBrowser, online, PHONE, reads, say, serverRig, until, Visitor } from './rig'
import { CAPABILITIES, scripted } from './scriptedServer'

/** attach chooses files in the menu. */
async function attach(page: Page, ...files: { name: string; mimeType?: string; buffer: Buffer }[]): Promise<void> {
  await page.getByRole('button', { name: 'Attach' }).click()
  await page.locator('.menu input[type=file]').last().setInputFiles(files.map((file) => ({ mimeType: 'application/octet-stream', ...file })))
  await page.locator('.attached').getByText(files.at(-1)!.name).waitFor()
}

/** kept waits until this many attachments are stored. */
const kept = (page: Page, count: number) =>
  until(
    () =>
      page.evaluate(async (want) => {
        const result = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => {
          request.onsuccess = () => resolve(request.result)
          request.onerror = () => reject(request.error)
        })
        const db = await result(indexedDB.open((await indexedDB.databases())[0]!.name!))
        const found = await result(db.transaction('state').objectStore('state').count(IDBKeyRange.bound(['attached'], ['attached', []])))
        db.close()
        return found === want
      }, count),
    `${count} attachments are kept`,
  )

const sum = (buffer: Buffer) => createHash('sha256').update(buffer).digest('hex')

describe('the composer', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = serverRig()

  it('keeps attachments until they are sent or removed, or the user signs out', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    const bytes = Buffer.alloc(300_000, 'kept ')
    await attach(page, { name: 'one.bin', buffer: bytes }, { name: 'two.bin', buffer: Buffer.from('two') }, { name: 'three.bin', buffer: Buffer.from('three') })
    await page.locator('#composer').fill('look at these')
    await page.getByRole('button', { name: 'Remove two.bin' }).click()
    await kept(page, 2)
    await page.reload()
    await online(page)
    assert.deepEqual(await page.locator('.attached b').allTextContents(), ['one.bin', 'three.bin'])
    assert.equal(await page.locator('#composer').inputValue(), 'look at these')
    await page.getByRole('button', { name: 'Send' }).click()
    await reads(page, `one.bin 300000 sha256:${sum(bytes)} text:look at these`)
    await reads(page, 'three.bin 5')
    await kept(page, 0)
    await page.reload()
    await online(page)
    assert.equal(await page.locator('.attached').count(), 0)
    assert.equal(await page.locator('.mine').count(), 2)
    await attach(page, { name: 'secret.bin', buffer: Buffer.from('x') })
    await kept(page, 1)
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign out' }).last().click()
    await page.getByRole('button', { name: 'Connect' }).waitFor()
    await until(() => page.evaluate(async () => (await indexedDB.databases()).length === 0), 'nothing is kept')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('shows upload progress, and resumes once after a reload or a lost connection', async () => {
    const gate = await ThrottledNetwork.start(rig.server)
    try {
      const visitor = await Visitor.come(rig.browser, gate.server)
      const page = await visitor.pair()
      const bar = page.getByRole('progressbar', { name: 'Uploading' })
      for (const [name, interrupt] of [['reloaded.bin', () => page.reload()], ['cut.bin', () => gate.cut()]] as const) {
        const bytes = Buffer.alloc(8_000_000, name)
        gate.close(700_000)
        await attach(page, { name, buffer: bytes })
        await page.getByRole('button', { name: 'Send' }).click()
        await until(() => bar.evaluate((element) => (element as HTMLProgressElement).value > 0), 'some of it is up')
        assert.ok(await bar.evaluate((element) => (element as HTMLProgressElement).value < 1))
        await interrupt()
        await bar.waitFor()
        gate.open()
        await reads(page, `${name} 8000000 sha256:${sum(bytes)}`)
        await bar.waitFor({ state: 'detached' })
      }
      await say(page, 'the end')
      await reads(page, 'You said: the end')
      assert.equal(await page.locator('.theirs').filter({ hasText: 'received' }).count(), 2)
      assert.equal(await page.locator('.mine').count(), 3)
      assert.deepEqual(await visitor.leave(), [])
    } finally {
      gate.end()
    }
  })

  it('offers the agent’s commands to the keyboard', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    const field = page.locator('#composer')
    const list = page.getByRole('listbox', { name: 'Commands' })
    const active = () => page.evaluate(() => document.getElementById(document.activeElement!.getAttribute('aria-activedescendant') ?? '')?.querySelector('b')?.textContent)
    await field.pressSequentially('/')
    await list.waitFor()
    assert.ok((await list.getByRole('option').count()) > 15)
    assert.match((await list.getByRole('option').first().textContent())!, /\/demo stream N.*streams N words/)
    assert.equal(await field.getAttribute('aria-controls'), await list.getAttribute('id'))
    await page.locator('[aria-live]').getByText(/^Commands: \d+$/).waitFor({ state: 'attached' })
    assert.equal(await active(), '/demo stream N')
    await page.keyboard.press('ArrowUp') // around to the last one
    assert.equal(await active(), '/sethome')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    assert.equal(await active(), '/demo pause N')
    assert.equal(await list.locator('[aria-selected=true]').count(), 1)
    // Typing narrows the list, also by a word of the name or the description.
    await field.pressSequentially('tw')
    assert.deepEqual(await list.locator('b').allTextContents(), ['/demo twice', '/demo two-cards'])
    await page.keyboard.press('Enter')
    assert.equal(await field.inputValue(), '/demo twice')
    await list.waitFor({ state: 'detached' })
    assert.equal(await field.getAttribute('aria-activedescendant'), null)
    assert.equal(await page.locator('.mine').count(), 0) // the command was completed, not sent
    await page.keyboard.press('Enter')
    await reads(page, 'two')
    // Tab completes a command that takes arguments and adds a space.
    await field.pressSequentially('/demo str')
    await list.waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await field.inputValue(), '/demo stream ')
    assert.equal(await page.evaluate(() => document.activeElement!.id), 'composer')
    await field.pressSequentially('3')
    await page.keyboard.press('Enter')
    await reads(page, 'w1 w2 w3')
    // Escape closes the list, and the text is sent as it is.
    await field.pressSequentially('/demo im')
    await list.waitFor()
    await page.keyboard.press('Escape')
    await list.waitFor({ state: 'detached' })
    await field.pressSequentially('x')
    assert.equal(await list.count(), 0)
    await page.keyboard.press('Enter')
    await reads(page, 'You said: /demo imx')
    // Enter sends a complete command at once, and a tap completes one.
    await field.pressSequentially('/demo tool')
    await list.waitFor()
    await page.keyboard.press('Enter')
    await reads(page, 'tool: done')
    await field.fill('/fail')
    await list.getByRole('option', { name: '/demo fail' }).click()
    assert.equal(await field.inputValue(), '/demo fail')
    assert.deepEqual(await visitor.leave(), [])
  })

  it('offers no commands or files if the agent supports none', async () => {
    const visitor = await rig.visit()
    const page = await scripted(visitor, { ready: { capabilities: { ...CAPABILITIES, media: false, audio: false } } })
    await page.locator('#composer').pressSequentially('/new')
    await page.evaluate(() => {
      const dropped = new DataTransfer()
      dropped.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }))
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: dropped, bubbles: true, cancelable: true }))
    })
    await page.getByText("The agent can't accept files right now.").waitFor()
    assert.equal(await page.locator('.attached').count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Attach' }).count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Record a voice message' }).count(), 0)
    assert.equal(await page.getByRole('listbox').count(), 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('shows the server’s limit before it sends a file', async () => {
    const visitor = await rig.visit()
    const page = await scripted(visitor, { ready: { capabilities: { ...CAPABILITIES, max_media_bytes: 2000 } } })
    await attach(page, { name: 'fits.bin', buffer: Buffer.alloc(2000) })
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.locator('.menu input[type=file]').last().setInputFiles([
      { name: 'over.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(2001) }, { name: 'none.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(0) },
    ])
    await page.getByText(/over\.bin is .*, larger than the .* limit/).waitFor()
    await page.getByText('none.bin is empty').waitFor()
    assert.deepEqual(await page.locator('.attached b').allTextContents(), ['fits.bin'])
    assert.deepEqual(await visitor.leave(), [])
  })

  it("takes a photo with a phone's camera", async () => {
    const visitor = await rig.visit(PHONE)
    const page = await visitor.pair()
    await page.getByRole('button', { name: 'Attach' }).click()
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Camera' }).click()
    const camera = await chooser
    assert.deepEqual(await camera.element().evaluate((input) => [(input as Element).getAttribute('capture'), (input as Element).getAttribute('accept')]), ['environment', 'image/*'])
    const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    await camera.setFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from(dot, 'base64') })
    await page.locator('.attached').getByText('photo.png').waitFor()
    await page.getByRole('button', { name: 'Send' }).click()
    await reads(page, 'received image photo.png')
    const desk = await rig.visit(DESKTOP)
    const other = await desk.pair()
    await other.getByRole('button', { name: 'Attach' }).click()
    await other.getByRole('button', { name: 'Photo or video' }).waitFor()
    assert.equal(await other.getByRole('button', { name: 'Camera' }).count(), 0)
    assert.deepEqual([...(await visitor.leave()), ...(await desk.leave())], [])
  })

  it('shares a message if the system can', async () => {
    for (const can of [true, false]) {
      const visitor = await rig.visit()
      await visitor.context.addInitScript((there) => {
        const shared: unknown[] = []
        Object.assign(window, { shared })
        const share = (what: unknown) => (shared.push(what), Promise.reject(new DOMException('closed', 'AbortError')))
        if (there) Object.defineProperty(Navigator.prototype, 'share', { value: share, configurable: true })
        else delete (Navigator.prototype as { share?: unknown }).share
      }, can)
      const page = await visitor.pair()
      await say(page, 'share me')
      await reads(page, 'You said: share me')
      await page.locator('.theirs').getByRole('button', { name: 'Actions' }).click()
      await page.getByRole('button', { name: 'Copy' }).waitFor()
      const share = page.getByRole('button', { name: 'Share' })
      assert.equal(await share.count(), can ? 1 : 0)
      if (can) {
        await share.click()
        assert.deepEqual(await page.evaluate(() => (window as unknown as { shared: unknown[] }).shared), [{ text: 'You said: share me' }])
        await share.waitFor({ state: 'detached' })
      }
      assert.deepEqual(await visitor.leave(), [])
    }
  })
})
