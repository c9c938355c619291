import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { DESKTOP, noBrowser, online, PHONE, reads, say, serverRig, until } from './rig'

describe('files, voice and cards', { skip: noBrowser, concurrency: 2 }, () => {
  const rig = serverRig({ MOBILE_MAX_MEDIA_BYTES: '3000000' })

  it('sends chosen, pasted and dropped files completely', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    const bytes = Buffer.alloc(700_000, 'hermes ')
    await page.getByRole('button', { name: 'Attach' }).click()
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'File', exact: true }).click()
    await (await chooser).setFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer: bytes }])
    await page.locator('.attached').getByText('notes.txt').waitFor()
    await say(page, 'my notes')
    await reads(page, `notes.txt 700000 sha256:${createHash('sha256').update(bytes).digest('hex')} text:my notes`)
    // Pasted and dropped.
    await page.evaluate(() => {
      const transfer = new DataTransfer()
      transfer.items.add(new File(['pasted'], 'pasted.txt', { type: 'text/plain' }))
      document.querySelector('#composer')!.dispatchEvent(new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true, cancelable: true }))
      const dropped = new DataTransfer()
      dropped.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }))
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: dropped, bubbles: true, cancelable: true }))
    })
    await page.locator('.attached li').nth(1).waitFor()
    await page.getByRole('button', { name: 'Send' }).click()
    await reads(page, 'pasted.txt 6')
    await reads(page, 'dropped.txt 7')
    // A file over the limit is rejected before it is sent.
    await page.locator('input[type=file]').first().waitFor({ state: 'attached' }).catch(() => {})
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.locator('.menu input[type=file]').last().setInputFiles({ name: 'huge.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(3_000_001) })
    await page.getByText('huge.bin is').waitFor()
    assert.equal(await page.locator('.attached').count(), 0)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('offers to shrink a large picture', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    const picture = await page.evaluate(async () => {
      const canvas = document.createElement('canvas')
      canvas.width = 2400
      canvas.height = 1200
      const drawing = canvas.getContext('2d')!
      for (let i = 0; i < 4000; i++) {
        drawing.fillStyle = `hsl(${i * 7} 80% 50%)`
        drawing.fillRect((i * 97) % 2400, (i * 61) % 1200, 60, 40)
      }
      const blob = await new Promise<Blob>((resolve) => canvas.toBlob((b) => resolve(b!), 'image/jpeg', 0.95))
      return [...new Uint8Array(await blob.arrayBuffer())]
    })
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.locator('.menu input[type=file]').first().setInputFiles({ name: 'big.jpeg', mimeType: 'image/jpeg', buffer: Buffer.from(picture) })
    await page.getByLabel(/Send smaller:/).check()
    await page.getByRole('button', { name: 'Send' }).click()
    await reads(page, /received image big\.jpg/)
    assert.equal(await page.locator('.mine .picture img').evaluate((img) => (img as HTMLImageElement).naturalWidth), 1600)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('resumes an upload after a reload', async () => {
    const visitor = await rig.visit()
    const page = await visitor.pair()
    await visitor.context.setOffline(true)
    await page.evaluate(() => window.dispatchEvent(new Event('pagehide'))) // the connection drops
    await page.locator('[data-state=waiting]').waitFor()
    await page.getByRole('button', { name: 'Attach' }).click()
    await page.locator('.menu input[type=file]').last().setInputFiles({ name: 'kept.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(500_000, 1) })
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('[data-progress=waiting]').waitFor()
    await visitor.context.setOffline(false)
    await page.reload()
    await reads(page, 'kept.bin 500000')
    assert.equal(await page.locator('.mine').count(), 1)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('shows pictures, videos, recordings and files, and saves them', async () => {
    const visitor = await rig.visit(PHONE)
    const page = await visitor.pair()
    await say(page, '/demo image')
    await page.locator('.picture').click()
    await page.locator('dialog.lightbox img').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('dialog.lightbox').waitFor({ state: 'detached' })
    await say(page, '/demo voice')
    await page.getByRole('button', { name: 'Play' }).click()
    await until(() => page.locator('.player audio').evaluate((audio) => (audio as HTMLAudioElement).currentTime > 0), 'the recording plays')
    await say(page, '/demo video')
    await until(() => page.locator('video').evaluate((video) => (video as HTMLVideoElement).readyState > 0 || (video as HTMLVideoElement).error).catch(() => false), 'the film is read').catch(() => {})
    await say(page, '/demo animation')
    await page.locator('.picture').nth(1).waitFor()
    await say(page, '/demo file')
    await page.locator('.file').getByText('demo.pdf').waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Save demo.pdf' }).click()
    assert.match(readFileSync(await (await saved).path(), 'latin1'), /^%PDF/)
    // Larger than a frame: it arrives as a link, is downloaded, and stays after the link expires.
    await say(page, '/demo file 4000000')
    await page.locator('.file').getByText('demo-4000000.bin').waitFor()
    const large = page.getByRole('link', { name: 'Save demo-4000000.bin' })
    await until(async () => (await large.getAttribute('href'))?.startsWith('blob:'), 'the file is kept')
    const download = page.waitForEvent('download')
    await large.click()
    const content = readFileSync(await (await download).path())
    assert.equal(content.length, 4_000_000)
    assert.ok(content.every((byte, i) => byte === i % 251))
    await page.reload()
    await online(page)
    await page.locator('.file').getByText('demo-4000000.bin').waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })

  it('records a voice message as 16 kHz WAV', async () => {
    const visitor = await rig.visit({ ...DESKTOP, permissions: ['microphone'] })
    const page = await visitor.pair()
    await page.getByRole('button', { name: 'Record a voice message' }).click()
    await until(() => page.locator('.recorder meter').evaluate((meter) => (meter as HTMLMeterElement).value > 0), 'something is heard')
    await page.getByText(/^0:(0[1-9]|[1-5]\d)$/).first().waitFor() // a busy machine may skip the first second
    assert.equal(await page.locator('.agent-avatar').getAttribute('data-avatar'), 'listening')
    await page.getByRole('button', { name: 'Send the recording' }).click()
    await reads(page, /received audio voice\.wav \d+ sha256:/)
    const header = await page.evaluate(async () => {
      const result = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
      })
      const db = await result(indexedDB.open((await indexedDB.databases())[0]!.name!))
      const [blob] = (await result(db.transaction('blobs').objectStore('blobs').getAll())) as Blob[]
      const view = new DataView(await blob!.arrayBuffer())
      return { channels: view.getUint16(22, true), rate: view.getUint32(24, true), bits: view.getUint16(34, true), seconds: (view.byteLength - 44) / 32_000 }
    })
    const { seconds, ...rest } = header
    assert.deepEqual(rest, { channels: 1, rate: 16_000, bits: 16 })
    assert.ok(seconds > 0.5, String(seconds))
    // A discarded recording isn't sent.
    await page.getByRole('button', { name: 'Record a voice message' }).click()
    await page.getByRole('button', { name: 'Discard the recording' }).click()
    await page.locator('#composer').waitFor()
    assert.equal(await page.locator('.mine').count(), 1)
    assert.deepEqual(await visitor.leave(), [])
  })

  it('answers cards once, in the card', async () => {
    const visitor = await rig.visit(PHONE)
    const page = await visitor.pair()
    await say(page, '/demo approval')
    const card = page.locator('.card').first()
    assert.equal(await card.locator('.shell').textContent(), 'rm -rf build')
    await card.getByText(/^\d:\d\d$/).waitFor()
    await page.reload() // an open card is shown again
    await card.getByRole('button', { name: 'Allow once' }).dblclick()
    await reads(page, 'approval: once')
    await card.getByText('Answered: Allow once').waitFor()
    assert.equal(await page.locator('.theirs').count(), 1)
    assert.equal(await card.getByRole('button').count(), 0)
    await say(page, '/demo clarify')
    const question = page.locator('.card').nth(1)
    await question.getByRole('button', { name: 'Something else' }).click()
    await question.getByLabel('Your own answer').fill('a spreadsheet')
    await question.getByRole('button', { name: 'Answer' }).click()
    await reads(page, 'clarify: a spreadsheet')
    await question.getByText('Answered: a spreadsheet').waitFor()
    await say(page, '/demo confirm')
    await page.getByRole('button', { name: /cancel/i }).click()
    await reads(page, 'confirm: cancel')
    // A card of a stopped turn is finished.
    await say(page, '/demo approval')
    await page.locator('.card').nth(3).getByRole('button', { name: 'Deny' }).waitFor()
    await page.getByRole('button', { name: 'Stop the agent' }).click()
    await page.locator('.card').nth(3).getByText('Expired without an answer.').waitFor()
    assert.deepEqual(await visitor.leave(), [])
  })
})
