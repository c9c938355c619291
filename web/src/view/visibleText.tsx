import { rightToLeft, whole, type Segment, type Shown } from '@hermes-mobile/sdk/visible'
import type { ComponentChildren } from 'preact'
import { memo } from 'preact/compat'
import { useState } from 'preact/hooks'
import { count, t } from '../i18n/i18n'

/** The maximum number of separate elements. The rest is one text, with its marks. */
const MAX_ELEMENTS = 2000

/**
 * VisibleText shows a text as a user must see it before a decision: with marks for invisible
 * characters, and with folds.
 */
export const VisibleText = memo(function Visible({ shown, command = false }: { shown: Shown; command?: boolean }) {
  const { segments } = shown
  const rest = segments.slice(MAX_ELEMENTS)
  return (
    <>
      {segments.slice(0, MAX_ELEMENTS).map((segment, i) => {
        if (segment.count) return <Fold key={i} segment={segment} />
        if (segment.kind === 'mark') return <span key={i} class="visible-mark">{segment.text}</span>
        return <bdi key={i} dir={command ? 'ltr' : undefined}>{command ? isolateWords(segment.text) : segment.text}</bdi>
      })}
      {rest.length > 0 && (command ? <bdo dir="ltr">{whole({ ...shown, segments: rest })}</bdo> : whole({ ...shown, segments: rest }))}
    </>
  )
})

/**
 * isolateWords isolates each right-to-left word of a command, so that the words appear in the order
 * in which the shell reads them. It also marks the ends of lines, because the screen wraps lines
 * too. With too many pieces, the whole text runs left to right.
 */
function isolateWords(text: string): ComponentChildren {
  const pieces = rightToLeft(text).flatMap((word, i) => (i % 2 ? [<bdi>{word}</bdi>] : markLineEnds(word)))
  return pieces.length <= MAX_ELEMENTS ? pieces : <bdo dir="ltr">{text.replaceAll('\n', '⏎\n')}</bdo>
}

const markLineEnds = (text: string): ComponentChildren[] =>
  text.split('\n').flatMap((line, i, { length }) => (i < length - 1 ? [line, <span class="line-end" aria-hidden="true">⏎</span>, '\n'] : [line]))

/** Fold replaces spaces, blank lines, or equal marks until the user opens it. */
function Fold({ segment }: { segment: Segment }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>{foldLabel(segment)}</button>
      {open ? <span class={segment.kind === 'marks' ? 'visible-mark' : ''}>{segment.text}</span> : segment.text.endsWith('\n') && '\n'}
    </>
  )
}

export function foldLabel({ kind, text, count: n }: Segment): string {
  return kind === 'lines' ? count('foldLines', n) : kind === 'spaces' ? count('foldSpaces', n) : t('foldMarks', { n, mark: text.slice(0, text.length / n) })
}
