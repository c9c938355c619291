import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { ClosedError, DownloadError, type FileEvent } from '../src/index.js'
import { fromBase64, toBase64 } from '../src/base64.js'
import { capabilities, Scripted } from './scripted.js'
import { eventually, within } from './wait.js'

const bytes = (n: number) => Uint8Array.from({ length: n }, (_, i) => i % 251)

async function withServer(request: ((q: IncomingMessage, r: ServerResponse) => void) | undefined, act: (server: Scripted) => Promise<void>): Promise<void> {
  const server = await Scripted.start(request)
  try {
    await act(server)
  } finally {
    await server.stop()
  }
}

describe('files up', () => {
  test('a file goes in parts, and starts over after a drop', () =>
    withServer(undefined, async (server) => {
      const device = await server.open()
      const data = bytes(600_000)
      const progress: number[] = []
      const sent = await device.sendFile({
        data: new Blob([data], { type: 'image/png' }), name: '/tmp/a dir/dot.png', caption: 'Look', progress: (n, of) => progress.push(n / of),
      })
      const first = await server.peer()
      await first.welcome()
      const head = await first.next('media')
      const { data: _, ...fields } = head
      assert.deepEqual(fields, { t: 'media', id: sent.id, kind: 'image', mime: 'image/png', filename: 'dot.png', caption: 'Look', size: data.length, part: 0, parts: 3 })
      await first.next('media')
      first.socket.terminate()
      const second = await server.peer()
      await second.welcome()
      const parts = [await second.next('media'), await second.next('media'), await second.next('media')]
      assert.deepEqual(parts.map((p) => [p.id, p.part, p.parts, p.caption, p.size]), [[sent.id, 0, 3, 'Look', data.length], [sent.id, 1, 3, undefined, undefined], [sent.id, 2, 3, undefined, undefined]])
      assert.deepEqual(Buffer.concat(parts.map((p) => Buffer.from(p.data as string, 'base64'))), Buffer.from(data))
      second.send({ t: 'accepted', id: sent.id, duplicate: false, queued: false })
      await sent.wait()
      assert.equal(progress.at(-1), 1)
    }))

  test('a message gets between the parts, however slow the network', () =>
    withServer(undefined, async (server) => {
      let most = 0
      let socket: WebSocket | undefined
      class Watched extends WebSocket {
        override send(data: string): void {
          super.send(data)
          socket = this
          most = Math.max(most, this.bufferedAmount)
        }
      }
      const device = await server.open({ WebSocket: Watched })
      const peer = await server.peer()
      await peer.welcome()
      await device.waitOnline()
      peer.socket.pause()
      await device.sendFile({ data: bytes(8_000_000) })
      await eventually('the network is full', () => socket!.bufferedAmount > 64 << 10)
      await device.send('let me through')
      peer.socket.resume()
      await peer.next('text')
      assert.ok(peer.got.filter((f) => f.t === 'media').length < 30)
      assert.ok(most < 500_000, `${most} bytes waited in the socket`)
    }))

  test('a device obeys the limits of the server', () =>
    withServer(undefined, async (server) => {
      const device = await server.open()
      const peer = await server.peer()
      await peer.welcome({ capabilities: { ...capabilities, max_media_bytes: 100_000, chunk_bytes: 10_000, max_parts: 5 } })
      await device.waitOnline()
      await assert.rejects(device.sendFile({ data: bytes(100_001) }), { code: 'too_big' })
      await assert.rejects(device.sendFile({ data: bytes(0) }), { code: 'bad_frame' })
      await device.sendFile({ data: bytes(100_000).buffer })
      const head = await peer.next('media')
      assert.deepEqual([head.kind, head.filename, head.parts, (head.data as string).length], ['document', 'file', 5, Math.ceil(20_000 / 3) * 4])
    }))

  test('a source that fails ends its file, and the next goes on', () =>
    withServer(undefined, async (server) => {
      const device = await server.open()
      const peer = await server.peer()
      await peer.welcome()
      const broken = await device.sendFile({ data: { size: 9, slice: () => ({ arrayBuffer: () => Promise.reject(new Error('unplugged')) }) } })
      const short = await device.sendFile({ data: { size: 9, slice: () => ({ arrayBuffer: () => Promise.resolve(new ArrayBuffer(3)) }) } })
      await device.sendFile({ data: bytes(9), name: 'good.bin' })
      await assert.rejects(within('the end', broken.wait()), /unplugged/)
      await assert.rejects(within('the end', short.wait()), /changed during/)
      assert.equal((await peer.next('media')).filename, 'good.bin')
    }))

  test('an exception in the progress callback does not end the writing', () =>
    withServer(undefined, async (server) => {
      const others = process.listeners('uncaughtException')
      process.removeAllListeners('uncaughtException')
      const fault = new Promise((resolve) => process.once('uncaughtException', resolve))
      const device = await server.open()
      const peer = await server.peer()
      await peer.welcome()
      const progress = () => {
        throw new Error('of the app')
      }
      await device.sendFile({ data: bytes(10), progress })
      await peer.next('media')
      assert.equal(((await within('the fault', fault)) as Error).message, 'of the app')
      for (const other of others) process.on('uncaughtException', other)
      await device.send('next')
      assert.equal((await peer.next()).text, 'next')
    }))

  test('a file that is rejected for a while starts over', () =>
    withServer(undefined, async (server) => {
      const device = await server.open()
      const peer = await server.peer()
      await peer.welcome()
      const sent = await device.sendFile({ data: bytes(10) })
      await peer.next('media')
      peer.send({ t: 'error', code: 'rate_limited', message: 'slowly', ref: sent.id })
      assert.equal((await peer.next('media')).part, 0)
    }))

  test('a file for which the server has no space fails, and the app decides when to retry', () =>
    withServer(undefined, async (server) => {
      const device = await server.open()
      const peer = await server.peer()
      await peer.welcome()
      const sent = await device.sendFile({ data: bytes(10) })
      await peer.next('media')
      peer.send({ t: 'error', code: 'no_space', message: 'the server has no room', ref: sent.id, retry_after: 3600 })
      await assert.rejects(within('the end', sent.wait()), { code: 'no_space', retryAfter: 3600 })
      await device.send('still here')
      await peer.next('text')
    }))
})

describe('files down', () => {
  const content = bytes(300_000)
  const linked = (url: string, size = content.length): FileEvent => ({
    type: 'file', id: 'f', kind: 'document', mime: '', filename: 'x', caption: '', size, replyTo: '', source: '', url,
  })

  test('a broken download resumes where it broke', () => {
    const asked: (string | undefined)[] = []
    return withServer((q, r) => {
      asked.push(q.headers.range)
      const from = Number(/bytes=(\d+)-/.exec(q.headers.range ?? '')?.[1] ?? 0)
      r.writeHead(from ? 206 : 200, { 'Content-Range': `bytes ${from}-${content.length - 1}/${content.length}` })
      r.write(content.subarray(from, from + 100_000), () => (from + 100_000 >= content.length ? r.end() : r.destroy()))
    }, async (server) => {
      const device = await server.open()
      const progress: number[] = []
      const data = await within('the file', device.download(linked('/media/x'), { progress: (n) => progress.push(n) }))
      assert.deepEqual(data, content)
      assert.equal(asked[0], undefined)
      assert.match(asked.at(-1)!, /^bytes=\d+-$/)
      assert.equal(progress.at(-1), content.length)
    })
  })

  test('a server without ranges, and one that is busy', () => {
    let n = 0
    return withServer((_, r) => {
      if (n++ === 1) return r.writeHead(503).end()
      r.writeHead(200)
      r.write(content.subarray(0, n === 1 ? 1000 : content.length), () => (n === 1 ? r.destroy() : r.end()))
      return undefined
    }, async (server) => {
      const device = await server.open()
      assert.deepEqual(await within('the file', device.download(linked('/media/x'))), content)
    })
  })

  test('an expired link, a missing file, too many bytes, and another scheme are final', () =>
    withServer((q, r) => {
      if (q.url === '/more') r.writeHead(200).end(content)
      else r.writeHead(q.url === '/old' ? 403 : 404).end()
    }, async (server) => {
      const device = await server.open()
      const fails = async (file: FileEvent) => {
        const error = await within('the end', device.download(file).catch((e: unknown) => e))
        assert.ok(error instanceof DownloadError, String(error))
        return error.status
      }
      assert.equal(await fails(linked('/old')), 403)
      assert.equal(await fails(linked('/gone')), 404)
      assert.equal(await fails(linked('/more', 10)), 0)
      assert.equal(await fails(linked('file:///etc/passwd')), 0)
      assert.equal(await fails(linked('http://')), 0)
    }))

  test('an exception of the app, the signal and close end a download', () =>
    withServer((q, r) => (q.url === '/busy' ? r.writeHead(503).end() : r.writeHead(200).end(content)), async (server) => {
      const device = await server.open({ backoff: { min: 3_600_000, max: 3_600_000 } })
      const write = () => {
        throw new Error('no room')
      }
      await assert.rejects(within('the end', device.downloadTo(linked('/x'), write)), /no room/)
      await assert.rejects(within('the end', device.download(linked('/x'), { progress: write })), /no room/)
      const controller = new AbortController()
      const busy = device.download(linked('/busy'), { signal: controller.signal })
      controller.abort(new Error('never mind'))
      await assert.rejects(within('the end', busy), /never mind/)
      const closed = assert.rejects(device.download(linked('/busy')), ClosedError)
      await device.close()
      await within('the end', closed)
    }))

  test('a platform without streams returns the whole body', () =>
    withServer((_, r) => r.writeHead(200).end(content), async (server) => {
      const whole: typeof fetch = async (...args) => {
        const response = await fetch(...args)
        const { status, statusText, headers } = response
        return { status, statusText, headers, body: null, arrayBuffer: () => response.arrayBuffer() } as Response
      }
      const device = await server.open({ fetch: whole })
      assert.equal((await device.download(linked('/x'))).length, content.length)
    }))
})

test('base64 both ways', async () => {
  for (const n of [0, 1, 2, 3, 8191, 8192, 8193, 100_000]) {
    const data = bytes(n)
    assert.equal(toBase64(data), Buffer.from(data).toString('base64'))
    assert.deepEqual(fromBase64(Buffer.from(data).toString('base64url')), data)
  }
  assert.deepEqual(fromBase64('AAEC\r\nAwQ='), bytes(5))
  await eventually('what is none is refused', () => assert.throws(() => fromBase64('a$')) ?? true)
})
