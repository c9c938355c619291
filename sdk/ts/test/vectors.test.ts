import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { decode, encode, type frame } from '../src/index.js'
import { toBase64 } from '../src/base64.js'

interface Repeat {
  text: string
  times: number
}

interface Vector {
  about: string
  direction: 'up' | 'down'
  raw?: string
  raw_parts?: Repeat[]
  expect: { type?: string; fields?: Record<string, unknown>; error?: string }
}

// The vectors serve every implementation. The Go package frame runs the same files.
const root = join('../..', 'testdata/frames')
const vectors = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({ name, ...(JSON.parse(readFileSync(join(root, name), 'utf8')) as Vector) }))

const spellOut = (parts: Repeat[]) => parts.map(({ text, times }) => text.repeat(times)).join('')

/** plain drops empty values and normalizes the rest. */
function plain(value: any): any {
  if (value instanceof Uint8Array) return toBase64(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value.repeat)) return spellOut(value.repeat as Repeat[])
  const says: Record<string, any> = {}
  for (const [name, inner] of Object.entries(value)) {
    const p = plain(inner)
    const empty = p === null || p === undefined || p === false || p === 0 || p === '' || (typeof p === 'object' && Object.keys(p as object).length === 0)
    if (!empty) says[name] = ['time', 'expires_at'].includes(name) ? new Date(p as string).toISOString() : p
  }
  return says
}

test('decode returns the expected fields', () => {
  let count = 0
  for (const v of vectors.filter((vector) => vector.direction === 'down')) {
    count++
    const { t, ...fields } = decode(v.raw ?? spellOut(v.raw_parts!))
    assert.equal(t, v.expect.type, v.name)
    if (t !== '?') assert.deepEqual(plain(fields), plain(v.expect.fields), `${v.name}: ${v.about}`)
  }
  assert.ok(count >= 50, `${count} vectors of down frames`)
})

test('encode writes the expected fields', () => {
  const types = new Set<string>()
  for (const v of vectors.filter((vector) => vector.direction === 'up' && vector.expect.type)) {
    const fields = plain(v.expect.fields ?? {}) as Record<string, any>
    if (fields.resume === 'malformed') continue // the SDK never writes one
    const bytes = v.expect.type !== 'call' && fields.data !== undefined ? { data: new Uint8Array(Buffer.from(fields.data as string, 'base64')) } : {}
    const written = encode({ t: v.expect.type, ...fields, ...bytes } as frame.Up)
    const { t, ...read } = JSON.parse(written) as Record<string, unknown>
    assert.ok(written.startsWith('{"t":'), v.name)
    assert.equal(t, v.expect.type, v.name)
    assert.deepEqual(plain(read), fields, `${v.name}: ${v.about}`)
    types.add(v.expect.type!)
  }
  assert.deepEqual([...types].sort(), ['ack', 'audio', 'call', 'deliver', 'hello', 'media', 'ping', 'prompt', 'stop', 'text'])
})

test('a Buffer encodes like other bytes', () => {
  assert.equal(encode({ t: 'audio', format: 'wav', data: Buffer.from([0, 1, 2]) }), '{"t":"audio","format":"wav","data":"AAEC"}')
})

test('decode throws for malformed frames', () => {
  for (const bad of ['', 'x', '[]', '"text"', 'null', '7', '{"t":5}', '{"t":"message","id":5}', '{"t":"message","chunk":[]}', '{"t":"prompt","options":{}}',
    '{"t":"media","data":"%"}', '{"t":"media","data":7}']) {
    assert.throws(() => decode(bad), Error, bad)
  }
})

test('a frame cannot reach into the prototypes', () => {
  assert.equal(decode('{"t":"toString"}').t, '?')
  assert.equal(decode('{"t":"__proto__"}').t, '?')
  const f = decode('{"t":"error","__proto__":{"code":"x"},"message":"m"}') as frame.Error
  assert.deepEqual({ ...f }, { t: 'error', code: '', message: 'm', ref: '', retry_after: 0 })
})

test('a field named like an inherited property is ignored', () => {
  const f = decode('{"t":"ready","capabilities":{"call":["a",null]},"hasOwnProperty":1}') as frame.Ready
  assert.deepEqual(f.capabilities.call, ['a', ''])
  assert.equal(f.capabilities.text, false)
})
