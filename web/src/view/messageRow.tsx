import { useEffect, useRef, useState } from 'preact/hooks'
import { memo } from 'preact/compat'
import type { Conversation } from '../conversation/conversation'
import type { Usage } from '../agent/agent'
import { itemText, type Item } from '../conversation/item'
import type { Client } from '../conversation/client'
import { locale, t } from '../i18n/i18n'
import { useOutside } from './outside'
import { ErrorBoundary } from './errorBoundary'
import { replyTarget, canWrite } from './state'
import { formatDay, sameDay, formatTime } from './clock'
import { copyText } from './clipboard'
import { File } from './file'
import { Icon, type IconName } from './icon'
import { displayName, textWithNames } from './displayName'
import { DeviceNotice } from './deviceNotice'
import { showToast } from './toast'
import { Card } from './card'
import { MessageText } from './messageText'
import { ToolSteps } from './toolSteps'

interface Props {
  client: Client
  /** The key of the item. */
  id: string
  /** The key of the item before. */
  before?: string
  jump: (key: string) => void
}

/** Row shows one item. It redraws only when its own item changes, and contains its errors. */
export const Row = memo(function Row(props: Props) {
  const item = props.client.conversation.signalFor(props.id)?.value
  return <ErrorBoundary resetKey={item} fallback={() => <FailedRow item={item} />}><RowContent {...props} /></ErrorBoundary>
})

/** FailedRow shows the plain text of an item whose row can't be drawn. */
function FailedRow({ item }: { item: Item | undefined }) {
  if (!item) return null
  return (
    <article class={`row ${item.mine ? 'mine' : 'theirs'}`} id={'row-' + item.key} tabindex={-1}>
      <div class="bubble text-bubble"><div class="text plain" dir="auto">{String(itemText(item))}</div><p class="message-note">{t('notFormatted')}</p></div>
    </article>
  )
}

function RowContent({ client, id, before, jump }: Props) {
  const item = client.conversation.signalFor(id)?.value
  const [open, setOpen] = useState(false)
  const article = useRef<HTMLElement>(null)
  useOutside(open, article, () => setOpen(false))
  if (!item) return null
  const previous = before ? client.conversation.get(before) : undefined
  const separate = !previous || !sameDay(previous.at, item.at)
  const joined = !separate && previous.mine === item.mine && previous.from === item.from && previous.kind !== 'tools' && previous.kind !== 'card' && previous.kind !== 'device' && item.at - previous.at < 120_000
  return (
    <>
      {separate && <h2 class="day-heading">{formatDay(item.at)}</h2>}
      {item.kind === 'tools' ? (
        <div class="row" id={'row-' + id} tabindex={-1}><ToolSteps item={item} /></div>
      ) : item.kind === 'card' ? (
        <div class="row" id={'row-' + id} tabindex={-1}><Card client={client} card={item} /></div>
      ) : item.kind === 'device' ? (
        <div class="row" id={'row-' + id} tabindex={-1}><DeviceNotice client={client} item={item} /></div>
      ) : (
        <article class={`row ${item.mine ? 'mine' : 'theirs'} ${joined ? 'joined' : ''}`} id={'row-' + id} tabindex={-1} data-id={item.id} aria-label={label(item)} ref={article} onKeyDown={(e) => e.key === 'Escape' && setOpen(false)}>
          <div class={`bubble ${item.kind}-bubble ${item.progress === 'failed' ? 'failed' : ''}`}>
            {item.from && !joined && <p class="from" dir="auto">{textWithNames('fromDevice', { name: item.from })}</p>}
            {item.source === 'cron' && <p class="from scheduled"><Icon name="clock" /><span dir="auto">{item.job ? textWithNames('scheduledJob', { job: item.job }) : t('scheduled')}</span></p>}
            <Quote conversation={client.conversation} item={item} jump={jump} />
            {item.kind === 'text' ? <MessageBody item={item} /> : <File item={item} client={client} />}
            {item.kind === 'text' && item.interrupted && <p class="message-note">{t('interruptedMessage')}</p>}
            <p class="meta">
              {item.kind === 'text' && !item.final ? <span class="muted">{t('writing')}</span> : <time dateTime={new Date(item.at).toISOString()}>{formatTime(item.at)}</time>}
              {item.progress && <DeliveryMark item={item} />}
            </p>
            {item.progress === 'failed' && (
              <p class="problem" role="alert"><span dir="auto">{item.error || t('failed')}</span> {canWrite(client) && <button type="button" class="small" onClick={() => void client.sender.retry(item)}><Icon name="retry" />{t('retry')}</button>}</p>
            )}
          </div>
          <button type="button" class={`round message-menu ${open ? 'open' : ''}`} aria-label={t('actions')} aria-expanded={open} onClick={() => setOpen(!open)}><Icon name="more" /></button>
          {open && <Actions client={client} item={item} done={() => setOpen(false)} />}
        </article>
      )}
    </>
  )
}

/** MessageBody shows the user's own text as it was written, and the agent's with formatting. */
function MessageBody({ item }: { item: Item & { kind: 'text' } }) {
  return item.mine ? <div class="text plain" dir="auto">{item.text}</div> : <MessageText text={item.text} finished={item.final} />
}

function label(item: Item): string {
  const who = item.mine ? (item.from ? t('fromDevice', { name: displayName(item.from) }) : t('you')) : t('agent')
  return `${who}, ${formatTime(item.at)}`
}

/** Quote shows the message that is replied to, unless it is the one directly before. */
function Quote({ conversation, item, jump }: { conversation: Conversation; item: Item; jump: (key: string) => void }) {
  if (!item.replyTo) return null
  if (!item.mine) {
    const order = conversation.order.peek()
    let at = order.lastIndexOf(item.key) - 1
    while (at >= 0 && !conversation.get(order[at]!)?.mine) at--
    if (order[at] === item.replyTo) return null
  }
  const quoted = conversation.get(item.replyTo)
  if (!quoted && !item.mine) return null
  return (
    <button type="button" class="quote" dir="auto" onClick={() => jump(item.replyTo)} aria-label={t('jumpToQuote')}>
      <b>{quoted?.mine === false ? t('agent') : t('you')}</b>
      <span>{quoted ? itemText(quoted).slice(0, 160) : t('earlierMessage')}</span>
    </button>
  )
}

const marks: Record<NonNullable<Item['progress']>, { icon: IconName; key: 'waitingToSend' | 'sent' | 'accepted' | 'queuedForAgent' | 'failed' }> = {
  waiting: { icon: 'clock', key: 'waitingToSend' },
  sent: { icon: 'check', key: 'sent' },
  accepted: { icon: 'checks', key: 'accepted' },
  queued: { icon: 'check', key: 'queuedForAgent' },
  failed: { icon: 'warning', key: 'failed' },
}

function DeliveryMark({ item }: { item: Item }) {
  const { icon, key } = marks[item.progress!]
  return <span class={`mark ${item.progress}`} role="img" aria-label={t(key)} title={t(key)} data-progress={item.progress}><Icon name={icon} /></span>
}

function Actions({ client, item, done }: { client: Client; item: Item; done: () => void }) {
  const act = (what: () => unknown) => () => {
    what()
    done()
  }
  const reply = () => {
    replyTarget.value = item
    document.getElementById('composer')?.focus()
  }
  const text = itemText(item)
  return (
    <div class="actions" role="group" aria-label={t('actions')}>
      {!item.fromGateway && canWrite(client) && <button type="button" class="small" onClick={act(reply)}><Icon name="reply" />{t('reply')}</button>}
      <button type="button" class="small" onClick={act(async () => showToast(t((await copyText(text)) ? 'copied' : 'notCopied')))}><Icon name="copy" />{t('copy')}</button>
      {'share' in navigator && <button type="button" class="small" onClick={act(() => navigator.share({ text }).catch(() => {}))}><Icon name="share" />{t('share')}</button>}
      {!item.fromGateway && client.agent.calls.supports('usage.list') && <UsageLine client={client} id={item.mine ? item.id : item.replyTo.slice(1)} />}
    </div>
  )
}

/** UsageLine shows the token usage of a message's turn, if it is known. */
function UsageLine({ client, id }: { client: Client; id: string }) {
  const [usage, setUsage] = useState<Usage>()
  useEffect(() => {
    if (id) void client.agent.usage(id).then(setUsage, () => {}) // it stays unknown
  }, [client, id])
  const number = (n: number) => new Intl.NumberFormat(locale.value).format(n)
  return (
    <p class="usage-line muted" role="status">
      {usage && t('usage', { input: number(usage.input_tokens), output: number(usage.output_tokens), total: number(usage.total_tokens) })}
      {usage?.model && <> · <span dir="ltr">{usage.model}</span></>}
    </p>
  )
}
