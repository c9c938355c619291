import { useComputed, useSignal } from '@preact/signals'
import { useCallback, useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { wanted } from '../talk/here'
import type { Talk } from '../talk/talk'
import { count, t } from '../words/words'
import { Avatar } from './avatar'
import { mayWrite } from './chat'
import { Icon } from './icon'
import { still } from './media'
import { Row } from './row'
import { around, bounds, down, end, MOST, STEP, up, type Part } from './window'

/** So near to the end the list follows what comes. */
const NEAR = 60
/** So near to an edge of what is drawn more is drawn. */
const EDGE = 800

/** emptyText says what can be done, of what the agent takes. */
function emptyText(talk: Talk): 'emptyText' | 'emptyFiles' | 'emptyWrite' {
  const { agent, capabilities } = talk.status.value
  if (agent === '' || (capabilities.media && capabilities.audio)) return 'emptyText'
  return capabilities.media ? 'emptyFiles' : 'emptyWrite'
}

/** List is what was said, oldest first. It follows the end as long as the person looks there; of a long history only a part is in the page. */
export function List({ talk }: { talk: Talk }) {
  const { conversation } = talk
  const frame = useRef<HTMLDivElement>(null)
  const inner = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const top = useRef(0) // where the list stood last
  const held = useRef<{ key: string; top: number }>(undefined) // a row that must not move while others come and go
  const reading = useRef(false)
  const away = useSignal(false)
  const unread = useSignal(0)
  const shown = useSignal<Part>({})
  const order = conversation.order.value
  const [from, to] = bounds(order, shown.value)
  const last = order.at(-1)
  const { typing, avatar } = talk.activity.value
  // A reply that grows redraws its own row only.
  const writing = useComputed(() => {
    const newest = conversation.at(conversation.order.value.at(-1) ?? '')?.value
    return newest?.kind === 'text' && !newest.mine && !newest.final
  }).value

  const toEnd = (smooth = false) => frame.current?.scrollTo({ top: frame.current.scrollHeight, behavior: smooth && !still() ? 'smooth' : 'instant' })

  useEffect(() => {
    const watch = new ResizeObserver(() => follows.current && toEnd())
    watch.observe(inner.current!)
    watch.observe(frame.current!)
    toEnd()
    // The rest of what is at hand comes after the first paint.
    const rest = requestAnimationFrame(() => setTimeout(() => follows.current && (shown.value = end(conversation.order.peek()))))
    return () => {
      watch.disconnect()
      cancelAnimationFrame(rest)
    }
  }, [])

  useEffect(() => {
    const newest = last && conversation.get(last)
    if (newest && newest.mine && !newest.from) {
      follows.current = true
      if (shown.peek().last !== undefined) shown.value = end(order)
      toEnd()
    } else if (!follows.current && newest) unread.value++
    if (follows.current && to - from > MOST + STEP) shown.value = end(order)
  }, [last])

  // What the gateway puts in front of a few rows is drawn at once: nobody can scroll up to it.
  useLayoutEffect(() => {
    if (follows.current && shown.peek().first !== undefined && from > 0 && to - from < MOST) shown.value = end(order)
  }, [order])

  // Where there is no room to scroll, more is asked for without it.
  useEffect(() => {
    const box = frame.current!
    if (shown.peek().first !== undefined && conversation.more.peek() && box.scrollHeight <= box.clientHeight) void earlier()
  }, [order])

  // What was put in front, or taken away there, must not move what is being read.
  useLayoutEffect(() => {
    const row = held.current && document.getElementById('row-' + held.current.key)
    if (row) frame.current!.scrollTop += row.getBoundingClientRect().top - held.current!.top
    held.current = undefined
    if (follows.current) toEnd()
  }, [order, shown.value])

  /** hold keeps the row at the top of the screen where it is, whatever the next drawing puts in front of it. */
  const hold = () => {
    const { top } = frame.current!.getBoundingClientRect()
    for (const row of inner.current!.querySelectorAll<HTMLElement>(':scope > .row')) {
      const place = row.getBoundingClientRect()
      if (place.bottom < top) continue
      held.current ??= { key: row.id.slice(4), top: place.top }
      break
    }
  }
  useEffect(() => conversation.order.subscribe(() => !follows.current && hold()), [conversation])

  const show = (part: Part) => {
    hold()
    shown.value = part
  }

  const scrolled = () => {
    const box = frame.current!
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight
    // What comes moves the end away before the list follows; only a person scrolls up.
    if (rest < NEAR && shown.peek().last === undefined) follows.current = true
    else if (box.scrollTop < top.current) follows.current = false
    const rises = box.scrollTop < top.current
    top.current = box.scrollTop
    away.value = !follows.current
    if (follows.current) unread.value = 0
    if (held.current) return // a part is on its way
    if (box.scrollTop < EDGE) void earlier()
    else if (!rises && rest < EDGE && shown.peek().last !== undefined) show(down(conversation.order.peek(), shown.peek()))
  }

  /** earlier shows older rows, from the disk or the gateway where they are not at hand. */
  const earlier = async () => {
    if (reading.current) return
    reading.current = true
    const first = () => bounds(conversation.order.peek(), shown.peek())[0]
    if (first() < STEP && conversation.more.peek()) await conversation.earlier().catch(() => undefined) // either may refuse; scrolling asks again
    reading.current = false
    if (first() > 0) show(up(conversation.order.peek(), shown.peek()))
  }

  /** jump shows an item of this device, and reads as far back as it takes. */
  const jump = useCallback(async (key: string) => {
    if (!(await conversation.find(key).catch(() => false))) return
    const order = conversation.order.peek()
    const [from, to] = bounds(order, shown.peek())
    const at = order.indexOf(key)
    if (at < 0) return
    follows.current = false
    const far = at < from || at >= to
    if (far) shown.value = around(order, key)
    requestAnimationFrame(() => {
      const row = document.getElementById('row-' + key)
      if (!row) return
      row.scrollIntoView({ block: 'center', behavior: far || still() ? 'instant' : 'smooth' })
      row.focus({ preventScroll: true })
      row.classList.add('found')
      setTimeout(() => row.classList.remove('found'), 1500)
    })
  }, [talk])

  // What a notification told of may still be on its way.
  const sought = wanted.value
  useEffect(() => {
    if (!sought) return
    void talk.keyOf(sought).then((key) => {
      if (!key || wanted.peek() !== sought) return
      wanted.value = ''
      void jump(key)
    })
  }, [talk, sought, last])

  const goToEnd = () => {
    const far = shown.peek().last !== undefined
    if (far) shown.value = end(conversation.order.peek())
    follows.current = far
    toEnd(!far)
  }

  return (
    <div class="list-box">
      <div class="list" ref={frame} onScroll={scrolled} tabindex={0} role="region" aria-label={t('conversation')}>
        <div class="list-inner" ref={inner} role="log" aria-live="off" aria-label={t('messages')}>
          {order.length === 0 && <div class="empty"><Avatar state="idle" /><p>{t('emptyTitle')}</p>{mayWrite(talk) && <p class="quiet">{t(emptyText(talk))}</p>}</div>}
          {order.slice(from, to).map((key, i) => <Row key={key} talk={talk} id={key} before={order[from + i - 1]} jump={jump} />)}
          {typing && !writing && to === order.length && <div class="row"><div class="bubble typing" role="img" aria-label={t(avatar === 'speaking' ? 'speaking' : 'thinking')}><i /><i /><i /></div></div>}
        </div>
      </div>
      {away.value && (
        <button type="button" class="to-end" aria-label={unread.value ? count('unread', unread.value) : t('toEnd')} onClick={goToEnd}>
          <Icon name="down" />{unread.value > 0 && <span class="badge">{unread.value}</span>}
        </button>
      )}
    </div>
  )
}
