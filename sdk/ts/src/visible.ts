/**
 * Shows the texts of a card the way a person must see them before deciding (doc/protocol.md §7): characters that do not show as themselves
 * become visible marks, and long blank runs fold. The Go package frame has the same functions and vectors (testdata/visible).
 *
 * @packageDocumentation
 */
import { MAX_BLANK_LINES, MAX_BLANKS, MAX_SAME_MARKS, MAX_SHOWN_CHARS, MAX_SHOWN_LABEL, MAX_SHOWN_LINES, MAX_STACK, type Option } from './frames.js'
import { CLASSES, HANGUL, IDEOGRAPHS, PICTOGRAPHS, SCRIPTS } from './visible-table.js'

/**
 * A piece of a text. `text`: characters that show as themselves. `mark`: visible marks for characters that do not, such as `[U+202E]` or ␛.
 * The others are folds: blank lines (`lines`), spaces or tabs (`spaces`), or repetitions of one mark (`marks`).
 */
export interface Segment {
  kind: 'text' | 'mark' | 'lines' | 'spaces' | 'marks'
  /** The text to show; of a fold, the text to show once the user opens it. */
  text: string
  /** The length of a fold; 0 for any other segment. */
  count: number
}

/** A text the way a person must see it. */
export interface Shown {
  segments: Segment[]
  /** Some characters do not show as themselves or, in a command, reorder others. */
  hidden: boolean
  /** There is a long run of blank lines or spaces. */
  blank: boolean
  /** The text is longer than a screen: 2,000 code points or 30 lines. */
  long: boolean
  /** Any of these: the text needs a closer look. */
  odd: boolean
}

/**
 * visible prepares a text for people: a question, a description, a label, a name. It turns Windows line ends into plain ones. It keeps what
 * honest text needs: joiners within emoji and after letters of scripts that use them, one variation selector after a character that has
 * variations, spaces of other widths, and tabs.
 */
export function visible(text: string): Shown {
  return segments(text.replaceAll('\r\n', '\n'), false)
}

/**
 * visibleCommand prepares a command. It is strict: joiners, variation selectors, spaces of other widths and unassigned characters become
 * marks, too. It shows a tab as ␉, which does not make the command odd. Right-to-left letters stay as they are and count as hidden: show a
 * command from left to right, with each of its {@link rightToLeft} words isolated.
 */
export function visibleCommand(command: string): Shown {
  return segments(command, true)
}

/** whole returns the text with its marks and with all folds open. */
export function whole({ segments }: Shown): string {
  return segments.map(({ text }) => text).join('')
}

/** folded returns the text with its marks and with {@link foldLabel} in place of each fold. */
export function folded({ segments }: Shown, label = foldLabel): string {
  return segments.map((s) => (s.count ? label(s) + (s.kind === 'lines' && s.text.endsWith('\n') ? '\n' : '') : s.text)).join('')
}

/** foldLabel returns the English text that replaces a fold until the user opens it. */
export function foldLabel({ kind, text, count }: Segment): string {
  return kind === 'lines' ? `… ${count} blank lines …` : kind === 'spaces' ? `… ${count} spaces …` : `… ${count} × ${text.slice(0, text.length / count)} …`
}

/** The part of a card that odd checks. A CardEvent has it. */
export interface CardTexts {
  text: string
  command: string
  description: string
  options: Pick<Option, 'id' | 'label'>[]
}

/** odd reports whether a card needs a closer look before the user answers it. Servers also set CardEvent.odd, except older ones. */
export function odd({ text, command, description, options }: CardTexts): boolean {
  return visible(text).odd || visibleCommand(command).odd || visible(description).odd || options.some((option) => {
    const label = option.label || option.id
    return label.includes('\n') || [...label].length > MAX_SHOWN_LABEL || visible(label).odd
  })
}

/**
 * grants reports whether an option of a card lets the agent do something, so that only a user who saw the whole card may choose it. Of an
 * approval and a confirmation, that is every option except the safe one; of a clarify card, none. Of an unknown kind, it is every option not
 * known to be safe.
 */
export function grants(kind: string, option: string): boolean {
  switch (kind) {
    case 'exec_approval':
      return option !== 'deny'
    case 'slash_confirm':
      return option !== 'cancel'
    case 'clarify':
      return false
  }
  return option !== 'deny' && option !== 'cancel'
}

/** rightToLeft splits a shown command: every second piece is a right-to-left word, which must be isolated (`<bdi>`). */
export function rightToLeft(text: string): string[] {
  const pieces = ['']
  for (const c of text) {
    const r = c.codePointAt(0)!
    const kind = classOf(r)
    const inside = pieces.length % 2 === 0
    if (kind !== 'C' && (kind === 'R') !== inside) pieces.push('')
    pieces[pieces.length - 1] += c
  }
  return pieces
}

/** P shows as itself. H: hidden. U: unassigned. B: blank. C: combining. J: joiner. S: selector. R: from right to left. K: part of Hangul. */
type Class = 'P' | 'H' | 'U' | 'B' | 'C' | 'J' | 'S' | 'R' | 'K'

let starts: number[] | undefined
const kinds: Class[] = []

function classOf(r: number): Class {
  if ((r >= 0x20 && r <= 0x7e) || r === 0x0a || r === 0x09) return 'P'
  if (!starts) {
    starts = []
    let at = 0
    for (const [, kind, length] of CLASSES.matchAll(/([A-Z])([0-9a-z]+)/g)) {
      starts.push(at)
      kinds.push(kind as Class)
      at += parseInt(length!, 36)
    }
  }
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (starts[middle]! <= r) low = middle
    else high = middle - 1
  }
  return kinds[low]!
}

const within = (ranges: typeof SCRIPTS, r: number) => ranges.some(([first, last]) => r >= first && r <= last)
const keycap = (r: number) => (r >= 0x30 && r <= 0x39) || r === 0x23 || r === 0x2a
const LINE = 0x0a
const TAB = 0x09
const TEXT_SELECTOR = 0xfe0e
const EMOJI_SELECTOR = 0xfe0f
const ENCLOSING_KEYCAP = 0x20e3

/** mark returns the visible mark for a character that does not show as itself. */
function mark(r: number): string {
  if (r < 0x20) return String.fromCodePoint(0x2400 + r) // its picture, as in ␛ for escape
  return r === 0x7f ? '␡' : `[U+${r.toString(16).toUpperCase().padStart(4, '0')}]`
}

/** points returns the code points of a text, with lone surrogates replaced as every other decoder does. */
function points(text: string): number[] {
  return Array.from(text, (c) => {
    const r = c.codePointAt(0)!
    return r >= 0xd800 && r <= 0xdfff ? 0xfffd : r
  })
}

function segments(text: string, command: boolean): Shown {
  const runes = points(text)
  const list: Segment[] = []
  let prev = 0 // the last ordinary character; 0 after a mark or a line end
  let base = false // a combining mark has a base character
  let stack = 0 // combining marks on that character
  let hidden = false
  let blank = false

  const begin = () => {
    prev = stack = 0
    base = false
  }
  const add = (kind: 'text' | 'mark', more: string) => {
    const last = list[list.length - 1]
    if (last?.kind === kind) last.text += more
    else list.push({ kind, text: more, count: 0 })
  }
  const fold = (kind: 'lines' | 'spaces' | 'marks', text: string, count: number) => {
    list.push({ kind, text, count })
    begin()
  }
  const space = (r: number) => r === 0x20 || r === TAB || (!command && r >= 0x80 && classOf(r) === 'B')
  const spaces = (from: number, to: number) => {
    let shown = ''
    for (let at = from; at < to; at++) shown += runes[at] === TAB && command ? '␉' : String.fromCodePoint(runes[at]!)
    return shown
  }
  const ordinary = (at: number): boolean => {
    const r = runes[at]!
    const next = runes[at + 1] ?? 0
    switch (classOf(r)) {
      case 'H':
        return false
      case 'U':
      case 'B':
        return !command
      case 'C':
        return base && stack < MAX_STACK
      case 'K':
        return within(HANGUL, prev)
      case 'J':
        return !command && (within(SCRIPTS, prev) || ((prev === EMOJI_SELECTOR || within(PICTOGRAPHS, prev)) && within(PICTOGRAPHS, next)))
      case 'S':
        if (command) return false
        if (r === EMOJI_SELECTOR || r === TEXT_SELECTOR) return within(PICTOGRAPHS, prev) || (keycap(prev) && next === ENCLOSING_KEYCAP)
        return within(IDEOGRAPHS, prev)
    }
    return true
  }
  const took = (r: number) => {
    prev = r
    switch (classOf(r)) {
      case 'C':
        stack++
        return
      case 'J':
      case 'S':
        return
      case 'B':
        base = false
        break
      default:
        base = r !== 0x20 && r !== TAB && !(command && r < 0x80 && !/[0-9A-Za-z]/.test(String.fromCodePoint(r)))
    }
    stack = 0
  }
  const line = (from: number, to: number) => {
    for (let at = from; at < to; ) {
      const r = runes[at]!
      if (r === LINE) {
        add('text', '\n')
        begin()
        at++
        continue
      }
      let end = at
      while (end < to && space(runes[end]!)) end++
      if (end - at > MAX_BLANKS) {
        blank = true
        fold('spaces', spaces(at, end), end - at)
        at = end
      } else if (r === TAB && command) {
        add('mark', '␉')
        begin()
        at++
      } else if (ordinary(at)) {
        add('text', String.fromCodePoint(r))
        took(r)
        hidden ||= command && classOf(r) === 'R'
        at++
      } else {
        hidden = true
        begin()
        for (end = at; end < to && runes[end] === r; ) end++
        if (end - at > MAX_SAME_MARKS) {
          fold('marks', mark(r).repeat(end - at), end - at)
          at = end
        } else {
          add('mark', mark(r))
          at++
        }
      }
    }
  }
  /** blanks adds blank lines, as a fold when there are many. */
  const blanks = (from: number, to: number, count: number) => {
    if (count > MAX_BLANK_LINES) {
      blank = true
      fold('lines', spaces(from, to), count)
    } else if (count) line(from, to)
  }

  let lines = 0
  let waiting = 0 // blank lines in a row, and where they begin
  let from = 0
  for (let at = 0; at < runes.length; ) {
    let end = at
    while (end < runes.length && runes[end] !== LINE) end++
    if (end < runes.length) end++
    lines++
    if (runes.slice(at, end).every((r) => r === LINE || space(r))) {
      if (waiting++ === 0) from = at
    } else {
      blanks(from, at, waiting)
      line(at, end)
      waiting = 0
    }
    at = end
  }
  blanks(from, runes.length, waiting)
  const long = runes.length > MAX_SHOWN_CHARS || lines > MAX_SHOWN_LINES
  return { segments: list, hidden, blank, long, odd: hidden || blank || long }
}
