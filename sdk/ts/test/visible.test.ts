import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { folded, grants, odd, rightToLeft, visible, visibleCommand, whole, type CardTexts, type Shown } from '../src/visible.js'

type Long = string | { repeat: { text: string; times: number }[] }

const read = <T>(name: string): T[] => JSON.parse(readFileSync('../../testdata/visible/' + name, 'utf8')) as T[]
const spell = (text: Long) => (typeof text === 'string' ? text : text.repeat.map(({ text, times }) => text.repeat(times)).join(''))

test('texts and commands are shown as the vectors say', () => {
  const vectors = read<{ about: string; kind: string; text: Long; shown?: Long; folded?: Long; hidden?: boolean; blank?: boolean; long?: boolean }>('texts.json')
  assert.ok(vectors.length >= 80)
  for (const v of vectors) {
    const got = v.kind === 'command' ? visibleCommand(spell(v.text)) : visible(spell(v.text))
    const shown = spell(v.shown ?? v.text)
    assert.equal(whole(got), shown, v.about)
    assert.equal(folded(got), v.folded === undefined ? shown : spell(v.folded), v.about)
    const { hidden = false, blank = false, long = false } = v
    assert.deepEqual([got.hidden, got.blank, got.long, got.odd], [hidden, blank, long, hidden || blank || long], v.about)
  }
})

test('cards are odd as the vectors say', () => {
  const vectors = read<{ about: string; card: Partial<CardTexts>; odd: boolean }>('cards.json')
  assert.ok(vectors.length >= 15)
  for (const { about, card, odd: want } of vectors) assert.equal(odd({ text: '', command: '', description: '', options: [], ...card }), want, about)
})

test('options grant as the vectors say', () => {
  const vectors = read<{ kind: string; option: string; grants: boolean }>('grants.json')
  assert.ok(vectors.length >= 10)
  for (const { kind, option, grants: want } of vectors) assert.equal(grants(kind, option), want, `${option} of ${kind}`)
})

test('a lone surrogate becomes a replacement character', () => {
  for (const text of ['a\ud800b', 'a\udc00', '\udc00\ud800']) {
    const got = visibleCommand(text)
    assert.equal(whole(got), whole(visibleCommand(text.replace(/[\ud800-\udfff]/g, '\ufffd'))))
    assert.ok(got.odd)
  }
})

test('right-to-left words are split off with their accents', () => {
  assert.deepEqual(rightToLeft('cat \u05d0\u05b8\u05d1 > \u05d2'), ['cat ', '\u05d0\u05b8\u05d1', ' > ', '\u05d2'])
  assert.deepEqual(rightToLeft('\u05d0'), ['', '\u05d0'])
  assert.deepEqual(rightToLeft('e\u0301'), ['e\u0301'])
})

/** strings returns texts that pretend to be something else. The same seed gives the same texts. */
function strings(count: number, seed: number): string[] {
  const next = () => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32)
  const pieces = ['a', 'Z', '7', '#', '/', ' ', '\n', '\t', '\r', '\r\n', '\x1b', '\x7f', '\x9b', '\u202e', '\u2066', '\u200b', '\u200c', '\u200d', '\ufe0f', '\ufe0e', '\ufe00',
    '\u{e0100}', '\u{e0041}', '\u0301', '\u0338', '\u20e3', '👨', '🏽', '❤', '葛', 'م', 'क', '्', 'א', '\u0660', '\u00a0', '\u3000', '\u2800', '\u0378', '\ue000', '\ufffd', '\u1100',
    '\u1161', '\u11a8', '\u3164', '한', '\u{10ffff}', '\u{e0080}']
  const piece = () => {
    const kind = next()
    if (kind < 0.1) return String.fromCodePoint(Math.floor(next() * 0xd800))
    if (kind < 0.2) return String.fromCodePoint(0xe000 + Math.floor(next() * (0x110000 - 0xe000)))
    const one = pieces[Math.floor(next() * pieces.length)]!
    return kind < 0.3 ? one.repeat(Math.floor(next() * 60)) : one
  }
  return Array.from({ length: count }, () => Array.from({ length: Math.floor(next() * 25) }, piece).join(''))
}

test('any text is shown as the package frame shows it', { timeout: 300_000 }, (t) => {
  // Each character of Unicode once, then texts of the nasty ones.
  const every = Array.from({ length: 0x1100 }, (_, page) => Array.from({ length: 256 }, (_, i) => page * 256 + i)
    .filter((r) => r < 0xd800 || r > 0xdfff).map((r) => 'a' + String.fromCodePoint(r)).join('-'))
  const texts = [...every, ...strings(3000, Date.now() >>> 0)]
  const go = spawnSync('go', ['run', './test/shown'], { cwd: '../..', input: JSON.stringify(texts), encoding: 'utf8', maxBuffer: 1 << 30 })
  if ((go.error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return t.skip('there is no Go')
  assert.equal(go.status, 0, go.stderr)
  const want = JSON.parse(go.stdout) as Record<string, unknown>[][]
  const told = (s: Shown) => ({
    segments: s.segments.map(({ kind, text, count }) => ({ Kind: kind, Text: text, Count: count })), folded: folded(s), hidden: s.hidden, blank: s.blank, long: s.long,
  })
  texts.forEach((text, i) => {
    const about = JSON.stringify(text).slice(0, 500)
    const ours = [visible(text), visibleCommand(text)]
    ours.forEach((s, j) => assert.deepEqual(told(s), { ...want[i]![j], segments: want[i]![j]!.segments ?? [] }, about))
  })
})
