import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseBlocks, type ParsedText } from '../src/view/markdownBlocks'
import { renderBlock, marked } from '../src/view/markdown'

/** random returns the same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const PIECES = ['a', 'para', ' ', '  ', '    ', '\n', '\n\n', '\r\n', '\r', '\r\n\r\n', '- ', '* ', '1. ', '2', '2. ', '> ', '# ', '## x', '---', '===', '|', '|---|---|', '| a | b |', '```', '~~~', '`', '**', '_', '[x]', '(y)', '<b>',
  '<pre>', '</pre>', '<!--', '-->', '<div>', '\\', '&amp;', '\t', 'https://example.com', '- [ ] ', '![i](data:x)', '\u00a0', '…', '😀', '$', '[x]: /y', '\n\n- ', '\n\n1. ', '\n\n  b', '\n\n    c', '\n\n> ', '\n\n|']

const drawn = (r: ParsedText) => r.blocks.map(renderBlock)

function grow(pieces: readonly string[]): void {
  let text = ''
  let before: ParsedText | undefined
  for (const piece of pieces) {
    text += piece
    before = parseBlocks(text, marked.defaults, before)
    assert.deepEqual(drawn(before), drawn(parseBlocks(text, marked.defaults)), JSON.stringify(pieces))
  }
}

it('renders a growing text like the whole text', () => {
  for (const text of ['one\n\ntwo\r\n\r\nthree x y', 'para\n|---|---|\n', '- a\n\n2', '1. a\n\n2. b\n\n  c\n\nd', '> a\n\n> b', '    code\n\n    code\n\nx', 'a\n\n|b|\n|-|\n|c|', '<pre>\n\na\n\n</pre>\n\nb', 'x\n\n[r]\n\ny\n\n[r]: /z\n\n', 'a\n\nb\n=\n\nc']) {
    grow([...text])
    for (let at = 1; at < text.length; at++) grow([text.slice(0, at), text.slice(at)])
  }
  for (let seed = 1; seed <= 1500; seed++) {
    const pick = random(seed)
    grow(Array.from({ length: 2 + pick(14) }, () => PIECES[pick(PIECES.length)]!))
  }
})

it('parses only the end of a long growing text', () => {
  const long = Array.from({ length: 500 }, (_, i) => `Paragraph ${i}.\n\n- one\n- two\n\n`).join('')
  const before = parseBlocks(long + 'The last', marked.defaults)
  assert.ok(before.stable.length > long.length - 40, `${before.stable.length} of ${long.length} characters are settled`)
})

it('shows text that is nested too deep as it was written', () => {
  for (const n of [50, 800, 1200, 5000, 100_000]) {
    for (const unit of ['- ', '> ', '>', '1. ', '* > ', '+ - ', '[', '**', '*a **b ', '![', '`', '<b>', '|', '((', '\\[', '~~', '_a ', '- - \t', '> - 1. ']) {
      if (n * unit.length > 200_000) continue
      const text = unit.repeat(n) + 'a'
      const { blocks } = parseBlocks(text, marked.defaults)
      const html = blocks.map(renderBlock).join('')
      assert.ok(html.includes('a'), JSON.stringify(unit) + n)
      assert.ok((html.match(/<(ul|ol|blockquote)/g) ?? []).length <= 100, `${JSON.stringify(unit)} × ${n} is drawn nested`)
    }
  }
  const kept = parseBlocks('Before.\n\n' + '- '.repeat(30) + 'a\n\nAfter.', marked.defaults)
  assert.equal(kept.blocks.length, 3)
})
