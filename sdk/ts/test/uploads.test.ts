import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { FrameError, open, type Device } from '../src/index.js'
import { openUploads, type FileStore, type KeptFile } from '../src/uploads.js'
import { RealServer } from './real.js'
import { capabilities, Scripted } from './scripted.js'
import { Collected, eventually } from './wait.js'

const bytes = (n: number) => Uint8Array.from({ length: n }, (_, i) => i % 251)

/** A disk for the store. */
class Disk implements FileStore {
  files: KeptFile[] = []
  broken = false
  load = () => [...this.files]
  add = (file: KeptFile) => void this.files.push(file)
  remove(id: string): void {
    if (this.broken) throw new Error('the disk is gone')
    this.files = this.files.filter((file) => file.id !== id)
  }
}

describe('files that outlive the page', () => {
  let server: Scripted
  beforeEach(async () => {
    server = await Scripted.start()
  })
  afterEach(() => server.stop())

  test('the next run sends an interrupted file whole, under its id', async () => {
    const disk = new Disk()
    const first = await server.open()
    const peer = await server.peer()
    await peer.welcome()
    const sent = await (await openUploads(first, disk)).send({ data: new Blob([bytes(600_000)]), name: 'a.bin', caption: 'Look' })
    await peer.next('media')
    await first.close()
    assert.deepEqual(disk.files.map((file) => file.id), [sent.id])

    const second = await server.open()
    const told: [string, number][] = []
    await openUploads(second, disk, { progress: (file, n, of) => told.push([file.id, n / of]) })
    const again = await server.peer()
    await again.welcome()
    const parts = [await again.next('media'), await again.next('media'), await again.next('media')]
    assert.deepEqual(parts.map((p) => [p.id, p.part, p.parts, p.filename, p.caption]), [
      [sent.id, 0, 3, 'a.bin', 'Look'], [sent.id, 1, 3, 'a.bin', undefined], [sent.id, 2, 3, 'a.bin', undefined],
    ])
    assert.deepEqual(Buffer.concat(parts.map((p) => Buffer.from(p.data as string, 'base64'))), Buffer.from(bytes(600_000)))
    assert.equal(disk.files.length, 1)
    again.send({ t: 'accepted', id: sent.id, duplicate: false, queued: false })
    await eventually('the file is forgotten', () => disk.files.length === 0)
    assert.deepEqual(told.at(-1), [sent.id, 1])
  })

  test('a rejected file is removed and reported', async () => {
    const disk = new Disk()
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome({ capabilities: { ...capabilities, max_media_bytes: 100 } })
    await device.waitOnline()
    disk.files = [{ id: 'old', data: bytes(101) }]
    const refused: [string, string][] = []
    const uploads = await openUploads(device, disk, { refused: (file, error) => refused.push([file.id, error.code]) })
    assert.deepEqual(refused, [['old', 'too_big']])
    await assert.rejects(uploads.send({ data: bytes(101) }), FrameError)
    assert.equal(disk.files.length, 0)
    const sent = await uploads.send({ data: bytes(100) })
    await peer.next('media')
    peer.send({ t: 'error', code: 'bad_frame', message: 'no', ref: sent.id })
    await assert.rejects(sent.wait(), /no/)
    await eventually('it is forgotten', () => disk.files.length === 0)
  })

  test('an agent without file support loses no file', async () => {
    const disk = new Disk()
    disk.files = [{ id: 'old', data: bytes(10) }]
    const device = await server.open()
    const peer = await server.peer()
    await peer.welcome({ capabilities: { ...capabilities, media: false } })
    await device.waitOnline()
    await openUploads(device, disk)
    assert.equal(disk.files.length, 1)
  })
})

test('the server accepts a file once, however often it is sent', async () => {
  const server = await RealServer.start()
  const devices: Device[] = []
  const connect = async () => {
    const device = await open({ url: `ws://127.0.0.1:${server.port}`, token: RealServer.token, device: { id: 'up-1' }, WebSocket, surroundings: false })
    devices.push(device)
    return device
  }
  try {
    const disk = new Disk()
    disk.broken = true // remove fails
    const first = await connect()
    const got = new Collected(first)
    await (await (await openUploads(first, disk)).send({ data: bytes(700_000), name: 'once.bin' })).wait()
    await got.first('message', (message) => message.final && message.text.includes('once.bin 700000'))
    await first.close()
    const second = await connect()
    const more = new Collected(second)
    await openUploads(second, disk)
    const receipt = await more.first('receipt')
    assert.deepEqual([receipt.id, receipt.duplicate], [disk.files[0]!.id, true])
    await (await second.send('and on')).wait()
    await more.first('message', (message) => message.final && message.text === 'You said: and on')
    assert.ok(!more.finals().some((text) => text.includes('once.bin')))
  } finally {
    await Promise.all(devices.map((device) => device.close()))
    await server.stop()
  }
})
