import { Lexer, type MarkedOptions, type Token } from 'marked'

/** Deeper than this nothing is readable, and readers that call themselves for each level run out of stack. */
const MAX_DEPTH = 40
/** Lines that open more levels than that: quotes in quotes, lists in lists. */
const TOO_DEEP = new RegExp(`^[ \\t]*(?:(?:>|[-+*]|\\d{1,9}[.)])[ \\t]*){${MAX_DEPTH + 1}}`, 'm')

/** One block of a text: a token of the reader, or text that is shown as it was written since it cannot be read. */
export type Block = { readonly raw: string; readonly token?: Token }

/** A text in blocks. Of one that grows, what is settled stays as it is. */
export interface ParsedText {
  readonly blocks: readonly Block[]
  /** The beginning of the text that nothing written behind it can change, and how many blocks it makes. */
  readonly stable: string
  readonly stableBlocks: number
  /** What the names of links stand for: it may be told anywhere in a text. */
  readonly links: string
}

const NO_LINKS = '{}'

/**
 * read parts a text into blocks. Of a text that grows, `before` is what was read of it: only what follows its settled part is read again,
 * and what comes of it is what the whole text would give.
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
  let end = 0 // of what was gone through
  let settled = 0
  let settledBlocks = 0
  for (const token of tokens) {
    const begin = end
    end += token.raw.length
    if (token.type === 'space' || token.type === 'def') continue
    // What stands before an empty line can only go on where the next block begins, which its first line tells.
    if (begin > 0 && /\n[ \t]*\n[ \t]*$/.test(text.slice(0, begin)) && text.indexOf('\n', begin) >= 0 && !/^[ \t]/.test(token.raw)) {
      settled = begin
      settledBlocks = blocks.length
    }
    blocks.push(tooDeep(token) ? { raw: token.raw } : { raw: token.raw, token })
  }
  const whole = end === text.length && links === NO_LINKS // else the places above mean nothing
  return { blocks, stable: whole ? text.slice(0, settled) : '', stableBlocks: whole ? settledBlocks : 0, links }
}

/** tooDeep looks at the tokens within a token, without calling itself. */
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
