import { useComputed, useSignal } from '@preact/signals'
import { useCallback, useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { notificationTarget } from '../conversation/currentClient'
import type { Client } from '../conversation/client'
import { count, t } from '../i18n/i18n'
import { Avatar } from './avatar'
import { canWrite } from './state'
import { Icon } from './icon'
import { prefersReducedMotion } from './mediaQuery'
import { Row } from './messageRow'
import { centeredOn, bounds, growDown, newest, MAX_ROWS, GROW_BY, growUp, type Range } from './listRange'

/** The list follows new items while it is at most this far from its end, in pixels. */
const FOLLOW_DISTANCE = 60
/** The list loads more rows within this distance of an edge, in pixels. */
const LOAD_DISTANCE = 800

/** emptyText invites the user to send what the agent accepts. */
function emptyText(client: Client): 'emptyText' | 'emptyFiles' | 'emptyWrite' {
  const { agent, capabilities } = client.status.value
  if (agent === '' || (capabilities.media && capabilities.audio)) return 'emptyText'
  return capabilities.media ? 'emptyFiles' : 'emptyWrite'
}

/**
 * MessageList shows the conversation, oldest first. It follows new items while the user is at the
 * end. Only a part of a long history is in the page.
 */
export function MessageList({ client }: { client: Client }) {
  const { conversation } = client
  const frame = useRef<HTMLDivElement>(null)
  const inner = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const top = useRef(0) // the last scroll position
  const held = useRef<{ key: string; top: number }>(undefined) // a row that must stay in place while others come and go
  const reading = useRef(false)
  const away = useSignal(false)
  const unread = useSignal(0)
  const shown = useSignal<Range>({})
  const order = conversation.order.value
  const [from, to] = bounds(order, shown.value)
  const last = order.at(-1)
  const { typing, avatar } = client.activity.value
  // A growing reply redraws its own row only.
  const writing = useComputed(() => {
    const last = conversation.signalFor(conversation.order.value.at(-1) ?? '')?.value
    return last?.kind === 'text' && !last.mine && !last.final
  }).value

  const toEnd = (smooth = false) => frame.current?.scrollTo({ top: frame.current.scrollHeight, behavior: smooth && !prefersReducedMotion() ? 'smooth' : 'instant' })

  useEffect(() => {
    const watch = new ResizeObserver(() => follows.current && toEnd())
    watch.observe(inner.current!)
    watch.observe(frame.current!)
    toEnd()
    // The other loaded rows follow after the first paint.
    const rest = requestAnimationFrame(() => setTimeout(() => follows.current && (shown.value = newest(conversation.order.peek()))))
    return () => {
      watch.disconnect()
      cancelAnimationFrame(rest)
    }
  }, [])

  useEffect(() => {
    const item = last === undefined ? undefined : conversation.get(last)
    if (item?.mine && !item.from) {
      follows.current = true
      if (shown.peek().last !== undefined) shown.value = newest(order)
      toEnd()
    } else if (!follows.current && item) unread.value++
    if (follows.current && to - from > MAX_ROWS + GROW_BY) shown.value = newest(order)
  }, [last])

  // Draw at once what the gateway adds above a few rows: the user can't scroll up to it.
  useLayoutEffect(() => {
    if (follows.current && shown.peek().first !== undefined && from > 0 && to - from < MAX_ROWS) shown.value = newest(order)
  }, [order])

  // If the list doesn't scroll, load more without scrolling.
  useEffect(() => {
    const box = frame.current!
    if (shown.peek().first !== undefined && conversation.hasMore.peek() && box.scrollHeight <= box.clientHeight) void earlier()
  }, [order])

  // Rows that are added or removed above must not move what the user reads.
  useLayoutEffect(() => {
    const row = held.current && document.getElementById('row-' + held.current.key)
    if (row) frame.current!.scrollTop += row.getBoundingClientRect().top - held.current!.top
    held.current = undefined
    if (follows.current) toEnd()
  }, [order, shown.value])

  /** hold keeps the topmost visible row in place when the next redraw adds rows above it. */
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

  const show = (part: Range) => {
    hold()
    shown.value = part
  }

  const scrolled = () => {
    const box = frame.current!
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight
    // New items move the end away before the list follows. Only a user scrolls up.
    if (rest < FOLLOW_DISTANCE && shown.peek().last === undefined) follows.current = true
    else if (box.scrollTop < top.current) follows.current = false
    const rises = box.scrollTop < top.current
    top.current = box.scrollTop
    away.value = !follows.current
    if (follows.current) unread.value = 0
    if (held.current) return // a range is being drawn
    if (box.scrollTop < LOAD_DISTANCE) void earlier()
    else if (!rises && rest < LOAD_DISTANCE && shown.peek().last !== undefined) show(growDown(conversation.order.peek(), shown.peek()))
  }

  /** earlier shows older rows, loading them from storage or the gateway if needed. */
  const earlier = async () => {
    if (reading.current) return
    reading.current = true
    const first = () => bounds(conversation.order.peek(), shown.peek())[0]
    if (first() < GROW_BY && conversation.hasMore.peek()) await conversation.loadEarlier().catch(() => undefined) // either may fail: scrolling asks again
    reading.current = false
    if (first() > 0) show(growUp(conversation.order.peek(), shown.peek()))
  }

  /** jump shows an item of this device and loads as much history as it takes. */
  const jump = useCallback(async (key: string) => {
    if (!(await conversation.reveal(key).catch(() => false))) return
    const order = conversation.order.peek()
    const [from, to] = bounds(order, shown.peek())
    const at = order.indexOf(key)
    if (at < 0) return
    follows.current = false
    const far = at < from || at >= to
    if (far) shown.value = centeredOn(order, key)
    requestAnimationFrame(() => {
      const row = document.getElementById('row-' + key)
      if (!row) return
      row.scrollIntoView({ block: 'center', behavior: far || prefersReducedMotion() ? 'instant' : 'smooth' })
      row.focus({ preventScroll: true })
      row.classList.add('highlighted')
      setTimeout(() => row.classList.remove('highlighted'), 1500)
    })
  }, [client])

  // The item of a notification may not have arrived yet.
  const query = notificationTarget.value
  useEffect(() => {
    if (!query) return
    void client.keyOf(query).then((key) => {
      if (!key || notificationTarget.peek() !== query) return
      notificationTarget.value = ''
      void jump(key)
    })
  }, [client, query, last])

  const goToEnd = () => {
    const far = shown.peek().last !== undefined
    if (far) shown.value = newest(conversation.order.peek())
    follows.current = far
    toEnd(!far)
  }

  return (
    <div class="list-box">
      <div class="list" ref={frame} onScroll={scrolled} tabindex={0} role="region" aria-label={t('conversation')}>
        <div class="list-inner" ref={inner} role="log" aria-live="off" aria-label={t('messages')}>
          {order.length === 0 && <div class="empty"><Avatar state="idle" /><p>{t('emptyTitle')}</p>{canWrite(client) && <p class="muted">{t(emptyText(client))}</p>}</div>}
          {order.slice(from, to).map((key, i) => <Row key={key} client={client} id={key} before={order[from + i - 1]} jump={jump} />)}
          {typing && !writing && to === order.length && <div class="row"><div class="bubble typing" role="img" aria-label={t(avatar === 'speaking' ? 'speaking' : 'thinking')}><i /><i /><i /></div></div>}
        </div>
      </div>
      {away.value && (
        <button type="button" class="jump-to-newest" aria-label={unread.value ? count('unread', unread.value) : t('jumpToNewest')} onClick={goToEnd}>
          <Icon name="down" />{unread.value > 0 && <span class="badge">{unread.value}</span>}
        </button>
      )}
    </div>
  )
}
