import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n/i18n'
import { Icon } from './icon'

/**
 * The content of cards that were read to the end, by key. A row can leave the page and come back.
 */
const readCards = new Map<string, string>()
const MAX_READ_CARDS = 50

/**
 * useReadToEnd reports whether the ends of all parts of a card have been on the screen. Other
 * content under the same key must be read again, and late reports about the earlier content don't
 * count. Use the version in the keys of the parts.
 */
export function useReadToEnd(key: string, parts: readonly string[]): { read: boolean; version: number; ended: (part: number) => void } {
  const content = JSON.stringify(parts)
  const now = useRef({ content, version: 0, ends: new Set<number>() })
  const [, redraw] = useState(0)
  if (now.current.content !== content) now.current = { content, version: now.current.version + 1, ends: new Set() }
  const { version, ends } = now.current
  const read = parts.every((part, i) => !part || ends.has(i)) || readCards.get(key) === content
  const ended = useCallback((part: number) => {
    if (now.current.version !== version || ends.has(part)) return
    ends.add(part)
    redraw((n) => n + 1)
  }, [version])
  useEffect(() => {
    if (!read) return
    readCards.set(key, content)
    if (readCards.size > MAX_READ_CARDS) readCards.delete(readCards.keys().next().value!)
  }, [read, key, content])
  return { read, version, ended }
}

/**
 * CardPart is a part of a card that scrolls if it is long. It reports when its end has been on the
 * screen.
 */
export function CardPart({ part, ended, children }: { part: number; ended: (part: number) => void; children: (end: ComponentChildren, scrolls: boolean) => ComponentChildren }) {
  const frame = useRef<HTMLDivElement>(null)
  const end = useRef<HTMLSpanElement>(null)
  const [more, setMore] = useState(false)
  const [scrolls, setScrolls] = useState(false)
  const rest = (box: Element) => box.scrollHeight - box.scrollTop - box.clientHeight
  useEffect(() => {
    const box = frame.current!.firstElementChild!
    const seen = new IntersectionObserver((entries) => entries.some(({ intersectionRatio }) => intersectionRatio >= 0.9) && ended(part), { threshold: [0.9, 1] })
    seen.observe(end.current!)
    const measure = () => {
      setMore(rest(box) > 2)
      setScrolls(box.scrollHeight - box.clientHeight > 2)
    }
    const sized = new ResizeObserver(measure)
    for (const element of [box, ...box.children]) sized.observe(element)
    box.addEventListener('scroll', measure, { passive: true })
    return () => {
      seen.disconnect()
      sized.disconnect()
      box.removeEventListener('scroll', measure)
    }
  }, [part, ended])
  const on = () => {
    const box = frame.current!.firstElementChild as HTMLElement
    box.scrollBy({ top: box.clientHeight * 0.8, behavior: 'instant' })
    if (rest(box) <= 2) box.focus({ preventScroll: true }) // the button disappears
  }
  return (
    <div class={more ? 'card-part more' : 'card-part'} ref={frame}>
      {children(<span class="card-part-end" ref={end} aria-hidden="true" />, scrolls)}
      {more && <button type="button" class="small card-part-more" onClick={on}><Icon name="down" />{t('showMore')}</button>}
    </div>
  )
}
