/**
 * What a person must see before deciding on a card (doc/protocol.md §7): characters that do not show as themselves become visible marks, and
 * long blank runs are folded. The Go package frame has the same functions, and the same vectors (testdata/visible).
 *
 * @packageDocumentation
 */
import { MAX_BLANK_LINES, MAX_BLANKS, MAX_SAME_MARKS, MAX_SHOWN_CHARS, MAX_SHOWN_LABEL, MAX_SHOWN_LINES, MAX_STACK, type Option } from './frames.js'
import { CLASSES, HANGUL, IDEOGRAPHS, PICTOGRAPHS, SCRIPTS } from './visible-table.js'

/**
 * A piece of a text. `text`: characters that show as themselves. `mark`: marks that stand for characters which do not, such as `[U+202E]` or ␛.
 * The others are folds: `lines` of so many blank lines, `spaces` of so many spaces or tabs, `marks` of the same mark so many times.
 */
export interface Segment {
  kind: 'text' | 'mark' | 'lines' | 'spaces' | 'marks'
  /** What to show; of a fold, once it was opened. */
  text: string
  /** How many a fold holds; 0 where it is none. */
  count: number
}

/** A text as a person must see it. */
export interface Shown {
  segments: Segment[]
  /** It holds characters that do not show as themselves or, in a command, change the order of others. */
  hidden: boolean
  /** It holds a long run of blank lines or spaces. */
  blank: boolean
  /** It is longer than a screen: 2,000 code points or 30 lines. */
  long: boolean
  /** Any of these: it needs a closer look. */
  odd: boolean
}

/**
 * visible shows a text for people: a question, a description, a label, a name. Line ends of Windows become plain ones. What honest text is made
 * of stays as it is: joiners within emoji and after letters of scripts that need them, one variation selector after a character that has
 * variations, spaces of other widths, and tabs.
 */
export function visible(text: string): Shown {
  return segments(text.replaceAll('\r\n', '\n'), false)
}

/**
 * visibleCommand shows a command. It is strict: joiners, variation selectors, spaces of other widths and unassigned characters are marks, too. A
 * tab is shown as ␉ and is not odd. Letters written from right to left stay as they are and count as hidden: show a command from left to right,
 * each of its {@link rightToLeft} words isolated.
 */
export function visibleCommand(command: string): Shown {
  return segments(command, true)
}

/** whole is the text with its marks, and with its folds opened. */
export function whole({ segments }: Shown): string {
  return segments.map(({ text }) => text).join('')
}

/** folded is the text with its marks, and in the place of each fold what {@link foldLabel} says. */
export function folded({ segments }: Shown, label = foldLabel): string {
  return segments.map((s) => (s.count ? label(s) + (s.kind === 'lines' && s.text.endsWith('\n') ? '\n' : '') : s.text)).join('')
}

/** foldLabel is what stands for a fold until it is opened, in English. */
export function foldLabel({ kind, text, count }: Segment): string {
  return kind === 'lines' ? `… ${count} blank lines …` : kind === 'spaces' ? `… ${count} spaces …` : `… ${count} × ${text.slice(0, text.length / count)} …`
}

/** What odd looks at. A CardEvent is one. */
export interface CardTexts {
  text: string
  command: string
  description: string
  options: Pick<Option, 'id' | 'label'>[]
}

/** odd reports whether a card needs a closer look before it is answered. The server says so, too, by CardEvent.odd, unless it is an older one. */
export function odd({ text, command, description, options }: CardTexts): boolean {
  return visible(text).odd || visibleCommand(command).odd || visible(description).odd || options.some((option) => {
    const label = option.label || option.id
    return label.includes('\n') || [...label].length > MAX_SHOWN_LABEL || visible(label).odd
  })
}

/**
 * grants reports whether an option of a card lets the agent do something, so that it may be chosen only by somebody who saw the whole card. Of an
 * approval and a confirmation these are all options but the safe one, of a clarify card none. Of an unknown kind all count that are not known to
 * be safe.
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

/** rightToLeft splits what is shown of a command: every second piece is a word that is written from right to left, to be isolated (`<bdi>`). */
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

/** mark is what stands for a character that does not show as itself. */
function mark(r: number): string {
  if (r < 0x20) return String.fromCodePoint(0x2400 + r) // its picture, as in ␛ for escape
  return r === 0x7f ? '␡' : `[U+${r.toString(16).toUpperCase().padStart(4, '0')}]`
}

/** points are the code points of a text. Half a surrogate pair is what every other decoder makes of it. */
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
  let base = false // a combining mark has a character to stand on
  let stack = 0 // combining marks that stand on it
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
  /** blanks adds blank lines, as a fold where there are many. */
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
