import { grants, visible, visibleCommand, whole, type Shown } from '@hermes-mobile/sdk/visible'
import { useId, useMemo, useRef, useState } from 'preact/hooks'
import type { CardItem } from '../talk/item'
import type { Talk } from '../talk/talk'
import { t, type Key } from '../words/words'
import { minutes, useNow } from './clock'
import { Icon } from './icon'
import { sentence } from './name'
import { Reading, useRead } from './reading'
import { Visible } from './visible'

/** Question is a card: what the agent asks, and one button for each answer until there is one. */
export function Question({ talk, card }: { talk: Talk; card: CardItem }) {
  const { cardKind, done, chosen } = card
  const { agent, capabilities, answersAt } = talk.status.value
  const may = agent === '' || capabilities.prompt
  const open = !done && !chosen && may
  const now = useNow(!done)
  const left = Math.ceil((card.until - now) / 1000)
  const [own, setOwn] = useState(false)
  const [text, setText] = useState('')
  const clarify = cardKind === 'clarify'
  const shown = useMemo(() => ({ text: visible(card.text), command: visibleCommand(card.command), description: visible(card.description) }), [card.text, card.command, card.description])
  const why = useMemo(() => warnings(card, shown), [card.odd, card.options, shown])
  const { read, version, ended } = useRead(card.key, [card.text, card.command, card.description])
  const section = useRef<HTMLElement>(null)
  const hint = useId()
  const locked = (option: string) => !read && grants(cardKind, option)
  const press = (option: string) => {
    if (locked(option)) section.current?.querySelector<HTMLElement>('.reading.more > [tabindex]')?.focus()
    else if (clarify && option === 'other') setOwn(true)
    else void talk.sending.answer(card, option)
  }
  const say = (event: Event) => {
    event.preventDefault()
    if (text.trim()) void talk.sending.answer(card, 'other', text.trim())
  }
  const heading = cardKind === 'exec_approval' ? t('approval') : clarify ? t('question') : cardKind === 'slash_confirm' ? t('confirmation') : t('question')
  return (
    <section class={`question ${done ? 'over' : ''}`} role="group" aria-label={heading} data-card={card.id} ref={section}>
      <header><Icon name={cardKind === 'exec_approval' ? 'shield' : 'question'} /><b>{heading}</b>
        {!done && left > 0 && <span class="left" role="timer" aria-label={t('timeLeft', { time: minutes(left) })}>{minutes(left)}</span>}
      </header>
      {why.length > 0 && <p class="odd-card" role="note"><Icon name="warning" /><span>{why.map((key) => t(key)).join(' ')}</span></p>}
      <Reading key={'text ' + version} part={0} ended={ended}>
        {(end, scrolls) => <div class="asked" dir="auto" tabindex={scrolls ? 0 : undefined}><Visible shown={shown.text} />{end}</div>}
      </Reading>
      {card.command && (
        <Reading key={'command ' + version} part={1} ended={ended}>
          {(end) => <pre class="shell" dir="ltr" translate={false} tabindex={0} role="group" aria-label={t('command')}><code><Visible shown={shown.command} command /></code>{end}</pre>}
        </Reading>
      )}
      {card.description && (
        <Reading key={'description ' + version} part={2} ended={ended}>
          {(end, scrolls) => <div class="quiet asked-why" dir="auto" tabindex={scrolls ? 0 : undefined}><Visible shown={shown.description} />{end}</div>}
        </Reading>
      )}
      {open && left > 0 && (
        <>
          <div class="options" role="group" aria-label={t('answers')}>
            {card.options.map((option) => (
              <button type="button" key={option.id} class={option.style === 'primary' ? 'primary' : option.style === 'danger' ? 'danger' : ''} dir="auto" aria-expanded={clarify && option.id === 'other' ? own : undefined} aria-disabled={locked(option.id) || undefined} aria-describedby={locked(option.id) ? hint : undefined} onClick={() => press(option.id)}>{labelOf(option)}</button>
            ))}
          </div>
          {card.options.some(({ id }) => locked(id)) && <p class="quiet" id={hint}>{t('readToEnd')}</p>}
        </>
      )}
      {open && left > 0 && clarify && (own || !card.options.some((option) => option.id === 'other')) && (
        <form class="own" onSubmit={say}>
          <input value={text} onInput={(e) => setText(e.currentTarget.value)} aria-label={t('ownWords')} placeholder={t('ownWords')} dir="auto" ref={(input) => { if (own && !text) input?.focus() }} />
          <button type="submit" class="primary" disabled={!text.trim()}>{t('answer')}</button>
        </form>
      )}
      <p class="outcome" role="status"><Outcome card={card} left={left} may={may} wait={Math.ceil((answersAt - now) / 1000)} /></p>
    </section>
  )
}

/** labelOf is what the button of an option says, in one line. */
function labelOf({ id, label }: { id: string; label: string }): string {
  return whole(visible(label || id)).replaceAll('\n', ' ⏎ ')
}

/** warnings say why a card needs a closer look. */
function warnings({ odd, options }: CardItem, { text, command, description }: { text: Shown; command: Shown; description: Shown }): Key[] {
  const all = [text, command, description]
  const why: Key[] = []
  if (command.hidden) why.push('oddCommand')
  else if (all.some(({ hidden }) => hidden) || options.some(({ id, label }) => visible(label || id).hidden)) why.push('oddQuestion')
  if (all.some(({ blank }) => blank)) why.push('oddBlank')
  if (all.some(({ long }) => long)) why.push('oddLong')
  return odd && why.length === 0 ? ['oddServer'] : why
}

/** Outcome says how it ended, or what it waits for. A device that is new waits for some seconds. */
function Outcome({ card: { done, chosen, options }, left, may, wait }: { card: CardItem; left: number; may: boolean; wait: number }) {
  const label = (id: string) => labelOf(options.find((option) => option.id === id) ?? { id, label: '' })
  if (done) {
    if (done.expired) return <>{t('expired')}</>
    const what = done.option === 'other' && chosen?.text && !done.by ? chosen.text : label(done.option)
    return <>{done.by ? sentence('answeredBy', { what, by: done.by }) : sentence('answered', { what })}</>
  }
  if (chosen) return <>{sentence('answering', { what: chosen.text || label(chosen.option) })}</>
  return <>{left <= 0 ? t('timeIsUp') : may ? '' : wait > 0 ? t('answersLater', { time: minutes(wait) }) : t('noAnswers')}</>
}
