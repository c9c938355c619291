import { grants, visible, visibleCommand, whole, type Shown } from '@hermes-mobile/sdk/visible'
import { useId, useMemo, useRef, useState } from 'preact/hooks'
import type { CardItem } from '../conversation/item'
import type { Client } from '../conversation/client'
import { t, type Key } from '../i18n/i18n'
import { formatDuration, useNow } from './clock'
import { Icon } from './icon'
import { textWithNames } from './displayName'
import { CardPart, useReadToEnd } from './cardPart'
import { VisibleText } from './visibleText'

/** Card shows a card: the agent's question and a button for each answer until it is answered. */
export function Card({ client, card }: { client: Client; card: CardItem }) {
  const { cardKind, done, chosen } = card
  const { agent, capabilities, answersAt } = client.status.value
  const may = agent === '' || capabilities.prompt
  const open = !done && !chosen && may
  const now = useNow(!done)
  const left = Math.ceil((card.until - now) / 1000)
  const [own, setOwn] = useState(false)
  const [text, setText] = useState('')
  const clarify = cardKind === 'clarify'
  const shown = useMemo(() => ({ text: visible(card.text), command: visibleCommand(card.command), description: visible(card.description) }), [card.text, card.command, card.description])
  const why = useMemo(() => warnings(card, shown), [card.odd, card.options, shown])
  const { read, version, ended } = useReadToEnd(card.key, [card.text, card.command, card.description])
  const section = useRef<HTMLElement>(null)
  const hint = useId()
  const locked = (option: string) => !read && grants(cardKind, option)
  const choose = (option: string) => {
    if (locked(option)) section.current?.querySelector<HTMLElement>('.card-part.more > [tabindex]')?.focus()
    else if (clarify && option === 'other') setOwn(true)
    else void client.sender.answerCard(card, option)
  }
  const submitText = (event: Event) => {
    event.preventDefault()
    if (text.trim()) void client.sender.answerCard(card, 'other', text.trim())
  }
  const heading = cardKind === 'exec_approval' ? t('approval') : clarify ? t('question') : cardKind === 'slash_confirm' ? t('confirmation') : t('question')
  return (
    <section class={`card ${done ? 'finished' : ''}`} role="group" aria-label={heading} data-card={card.id} ref={section}>
      <header><Icon name={cardKind === 'exec_approval' ? 'shield' : 'question'} /><b>{heading}</b>
        {!done && left > 0 && <span class="time-left" role="timer" aria-label={t('timeLeft', { time: formatDuration(left) })}>{formatDuration(left)}</span>}
      </header>
      {why.length > 0 && <p class="card-warning" role="note"><Icon name="warning" /><span>{why.map((key) => t(key)).join(' ')}</span></p>}
      <CardPart key={'text ' + version} part={0} ended={ended}>
        {(end, scrolls) => <div class="card-text" dir="auto" tabindex={scrolls ? 0 : undefined}><VisibleText shown={shown.text} />{end}</div>}
      </CardPart>
      {card.command && (
        <CardPart key={'command ' + version} part={1} ended={ended}>
          {(end) => <pre class="shell" dir="ltr" translate={false} tabindex={0} role="group" aria-label={t('command')}><code><VisibleText shown={shown.command} command /></code>{end}</pre>}
        </CardPart>
      )}
      {card.description && (
        <CardPart key={'description ' + version} part={2} ended={ended}>
          {(end, scrolls) => <div class="muted card-description" dir="auto" tabindex={scrolls ? 0 : undefined}><VisibleText shown={shown.description} />{end}</div>}
        </CardPart>
      )}
      {open && left > 0 && (
        <>
          <div class="options" role="group" aria-label={t('answers')}>
            {card.options.map((option) => (
              <button type="button" key={option.id} class={option.style === 'primary' ? 'primary' : option.style === 'danger' ? 'danger' : ''} dir="auto" aria-expanded={clarify && option.id === 'other' ? own : undefined} aria-disabled={locked(option.id) || undefined} aria-describedby={locked(option.id) ? hint : undefined} onClick={() => choose(option.id)}>{labelOf(option)}</button>
            ))}
          </div>
          {card.options.some(({ id }) => locked(id)) && <p class="muted" id={hint}>{t('readToEnd')}</p>}
        </>
      )}
      {open && left > 0 && clarify && (own || !card.options.some((option) => option.id === 'other')) && (
        <form class="own-answer" onSubmit={submitText}>
          <input value={text} onInput={(e) => setText(e.currentTarget.value)} aria-label={t('ownAnswer')} placeholder={t('ownAnswer')} dir="auto" ref={(input) => { if (own && !text) input?.focus() }} />
          <button type="submit" class="primary" disabled={!text.trim()}>{t('answer')}</button>
        </form>
      )}
      <p class="outcome" role="status"><Outcome card={card} left={left} may={may} wait={Math.ceil((answersAt - now) / 1000)} /></p>
    </section>
  )
}

/** labelOf returns the label of an option, on one line. */
function labelOf({ id, label }: { id: string; label: string }): string {
  return whole(visible(label || id)).replaceAll('\n', ' ⏎ ')
}

/** warnings returns the reasons why a card needs a closer look. */
function warnings({ odd, options }: CardItem, { text, command, description }: { text: Shown; command: Shown; description: Shown }): Key[] {
  const all = [text, command, description]
  const why: Key[] = []
  if (command.hidden) why.push('hiddenInCommand')
  else if (all.some(({ hidden }) => hidden) || options.some(({ id, label }) => visible(label || id).hidden)) why.push('hiddenInQuestion')
  if (all.some(({ blank }) => blank)) why.push('foldedBlanks')
  if (all.some(({ long }) => long)) why.push('longText')
  return odd && why.length === 0 ? ['serverWarning'] : why
}

/** Outcome shows how a card ended or what it waits for. A new device has to wait some seconds. */
function Outcome({ card: { done, chosen, options }, left, may, wait }: { card: CardItem; left: number; may: boolean; wait: number }) {
  const label = (id: string) => labelOf(options.find((option) => option.id === id) ?? { id, label: '' })
  if (done) {
    if (done.expired) return <>{t('expired')}</>
    const what = done.option === 'other' && chosen?.text && !done.by ? chosen.text : label(done.option)
    return <>{done.by ? textWithNames('answeredBy', { what, by: done.by }) : textWithNames('answered', { what })}</>
  }
  if (chosen) return <>{textWithNames('answering', { what: chosen.text || label(chosen.option) })}</>
  return <>{left <= 0 ? t('timeIsUp') : may ? '' : wait > 0 ? t('answersLater', { time: formatDuration(wait) }) : t('cannotAnswer')}</>
}
