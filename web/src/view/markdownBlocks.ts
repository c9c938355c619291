import { Lexer, type MarkedOptions, type Token } from 'marked'

/** Nothing nested deeper is readable, and recursive parsers run out of stack. */
const MAX_DEPTH = 40
/** A line that opens more levels than that: quotes in quotes, lists in lists. */
const TOO_DEEP = new RegExp(`^[ \\t]*(?:(?:>|[-+*]|\\d{1,9}[.)])[ \\t]*){${MAX_DEPTH + 1}}`, 'm')

/** Block is a token of the parser, or raw text that it can't parse. */
export type Block = { readonly raw: string; readonly token?: Token }

/** ParsedText is a text in blocks. The stable blocks of a growing text don't change. */
export interface ParsedText {
  readonly blocks: readonly Block[]
  /** The start of the text that no continuation can change, and the number of its blocks. */
  readonly stable: string
  readonly stableBlocks: number
  /** The link definitions, which can be anywhere in a text. */
  readonly links: string
}

const NO_LINKS = '{}'

/**
 * parseBlocks splits a text into blocks. `before` is the result for the start of a growing text:
 * only what follows its stable part is parsed again. The result is the same as for the whole text.
 */
export function parseBlocks(text: string, options: MarkedOptions, before?: ParsedText): ParsedText {
  text = text.replace(/\r\n?/g, '\n')
  if (before?.stable && before.links === NO_LINKS && text.startsWith(before.stable)) {
    const rest = lex(text.slice(before.stable.length), options)
    if (rest.links === NO_LINKS) {
      return {
        blocks: [...before.blocks.slice(0, before.stableBlocks), ...rest.blocks],
        stable: before.stable + rest.stable,
        stableBlocks: before.stableBlocks + rest.stableBlocks,
        links: NO_LINKS,
      }
    }
  }
  return lex(text, options)
}

function lex(text: string, options: MarkedOptions): ParsedText {
  let tokens: Token[] & { links?: object }
  try {
    if (TOO_DEEP.test(text)) throw new RangeError('the text is nested too deep')
    tokens = new Lexer(options).lex(text)
  } catch {
    return { blocks: text.trim() ? [{ raw: text }] : [], stable: '', stableBlocks: 0, links: NO_LINKS }
  }
  const links = JSON.stringify(tokens.links ?? {})
  const blocks: Block[] = []
  let end = 0 // the length of the text so far
  let settled = 0
  let settledBlocks = 0
  for (const token of tokens) {
    const begin = end
    end += token.raw.length
    if (token.type === 'space' || token.type === 'def') continue
    // Text before a blank line can only continue where the next block starts, and that block's
    // first line shows whether it does.
    if (begin > 0 && /\n[ \t]*\n[ \t]*$/.test(text.slice(0, begin)) && text.indexOf('\n', begin) >= 0 && !/^[ \t]/.test(token.raw)) {
      settled = begin
      settledBlocks = blocks.length
    }
    blocks.push(tooDeep(token) ? { raw: token.raw } : { raw: token.raw, token })
  }
  const whole = end === text.length && links === NO_LINKS // otherwise the offsets above are meaningless
  return { blocks, stable: whole ? text.slice(0, settled) : '', stableBlocks: whole ? settledBlocks : 0, links }
}

/** tooDeep checks the nesting of a token without recursion. */
function tooDeep(token: Token): boolean {
  let level: unknown[] = [token]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > 2 * MAX_DEPTH) return true // a list and its item are two levels of tokens
    level = level.flatMap((one) => {
      const { tokens, items, header, rows } = one as Record<'tokens' | 'items' | 'header' | 'rows', unknown>
      return [tokens, items, header, rows].filter(Array.isArray).flat(2)
    })
  }
  return false
}
