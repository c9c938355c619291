import { useSignal } from '@preact/signals'
import { useCallback, useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { wanted } from '../talk/here'
import type { Talk } from '../talk/talk'
import { count, t } from '../words/words'
import { Avatar } from './avatar'
import { Icon } from './icon'
import { still } from './media'
import { Row } from './row'

/** So near to the end the list follows what comes. */
const NEAR = 60

/** List is what was said, oldest first. It follows the end as long as the person looks there. */
export function List({ talk }: { talk: Talk }) {
  const { conversation } = talk
  const frame = useRef<HTMLDivElement>(null)
  const inner = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const top = useRef(0) // where the list stood last
  const height = useRef(0) // before earlier items were put in front
  const away = useSignal(false)
  const unread = useSignal(0)
  const order = conversation.order.value
  const last = order.at(-1)
  const { typing, avatar } = talk.activity.value
  const newest = last ? conversation.at(last)?.value : undefined
  const writing = newest?.kind === 'text' && !newest.mine && !newest.final

  const toEnd = (smooth = false) => frame.current?.scrollTo({ top: frame.current.scrollHeight, behavior: smooth && !still() ? 'smooth' : 'instant' })

  useEffect(() => {
    const watch = new ResizeObserver(() => follows.current && toEnd())
    watch.observe(inner.current!)
    watch.observe(frame.current!)
    toEnd()
    return () => watch.disconnect()
  }, [])

  useEffect(() => {
    if (newest?.mine && !newest.from) {
      follows.current = true
      toEnd()
    } else if (!follows.current && newest) unread.value++
  }, [last])

  // What was put in front must not move what is being read.
  useLayoutEffect(() => {
    const box = frame.current!
    if (height.current > 0) box.scrollTop += box.scrollHeight - height.current
    height.current = 0
  }, [order[0]])

  const scrolled = () => {
    const box = frame.current!
    // What comes moves the end away before the list follows; only a person scrolls up.
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR) follows.current = true
    else if (box.scrollTop < top.current) follows.current = false
    top.current = box.scrollTop
    away.value = !follows.current
    if (follows.current) unread.value = 0
    if (box.scrollTop < 400 && conversation.more.peek() && height.current === 0) void earlier()
  }

  const earlier = async () => {
    height.current = frame.current!.scrollHeight
    const first = conversation.order.peek()[0]
    await conversation.earlier()
    if (conversation.order.peek()[0] === first) height.current = 0
  }

  /** jump shows an item, and reads the history as far back as it takes. */
  const jump = useCallback(async (key: string) => {
    while (!conversation.at(key) && conversation.more.peek()) await earlier()
    requestAnimationFrame(() => {
      const row = document.getElementById('row-' + key)
      if (!row) return
      follows.current = false
      row.scrollIntoView({ block: 'center', behavior: still() ? 'instant' : 'smooth' })
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

  return (
    <div class="list-box">
      <div class="list" ref={frame} onScroll={scrolled} tabindex={0} role="region" aria-label={t('conversation')}>
        <div class="list-inner" ref={inner} role="log" aria-live="off" aria-label={t('messages')}>
          {order.length === 0 && <div class="empty"><Avatar state="idle" /><p>{t('emptyTitle')}</p><p class="quiet">{t('emptyText')}</p></div>}
          {order.map((key, i) => <Row key={key} talk={talk} id={key} before={order[i - 1]} jump={jump} />)}
          {typing && !writing && <div class="row"><div class="bubble typing" role="img" aria-label={t(avatar === 'speaking' ? 'speaking' : 'thinking')}><i /><i /><i /></div></div>}
        </div>
      </div>
      {away.value && (
        <button type="button" class="to-end" aria-label={unread.value ? count('unread', unread.value) : t('toEnd')} onClick={() => toEnd(true)}>
          <Icon name="down" />{unread.value > 0 && <span class="badge">{unread.value}</span>}
        </button>
      )}
    </div>
  )
}
