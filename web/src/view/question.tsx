import { useState } from 'preact/hooks'
import type { CardItem } from '../talk/item'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { minutes, useNow } from './clock'
import { Icon } from './icon'

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
  const press = (option: string) => {
    if (clarify && option === 'other') setOwn(true)
    else void talk.sending.answer(card, option)
  }
  const say = (event: Event) => {
    event.preventDefault()
    if (text.trim()) void talk.sending.answer(card, 'other', text.trim())
  }
  const heading = cardKind === 'exec_approval' ? t('approval') : clarify ? t('question') : cardKind === 'slash_confirm' ? t('confirmation') : t('question')
  return (
    <section class={`question ${done ? 'over' : ''}`} aria-label={heading} data-card={card.id}>
      <header><Icon name={cardKind === 'exec_approval' ? 'shield' : 'question'} /><b>{heading}</b>
        {!done && left > 0 && <span class="left" role="timer" aria-label={t('timeLeft', { time: minutes(left) })}>{minutes(left)}</span>}
      </header>
      <p class="asked" dir="auto">{card.text}</p>
      {card.command && <pre class="shell" dir="ltr" tabindex={0} role="group" aria-label={t('command')}><code>{card.command}</code></pre>}
      {card.description && <p class="quiet" dir="auto">{card.description}</p>}
      {open && left > 0 && (
        <div class="options" role="group" aria-label={t('answers')}>
          {card.options.map((option) => (
            <button type="button" key={option.id} class={option.style === 'primary' ? 'primary' : option.style === 'danger' ? 'danger' : ''} dir="auto" aria-expanded={clarify && option.id === 'other' ? own : undefined} onClick={() => press(option.id)}>{option.label || option.id}</button>
          ))}
        </div>
      )}
      {open && left > 0 && clarify && (own || !card.options.some((option) => option.id === 'other')) && (
        <form class="own" onSubmit={say}>
          <input value={text} onInput={(e) => setText(e.currentTarget.value)} aria-label={t('ownWords')} placeholder={t('ownWords')} dir="auto" ref={(input) => { if (own && !text) input?.focus() }} />
          <button type="submit" class="primary" disabled={!text.trim()}>{t('answer')}</button>
        </form>
      )}
      <p class="outcome" role="status">{outcome(card, left, may, Math.ceil((answersAt - now) / 1000))}</p>
    </section>
  )
}

/** outcome says how it ended, or what it waits for. A device that is new waits for some seconds. */
function outcome({ done, chosen, options }: CardItem, left: number, may: boolean, wait: number): string {
  const label = (id: string) => options.find((option) => option.id === id)?.label || id
  if (done) {
    if (done.expired) return t('expired')
    const what = done.option === 'other' && chosen?.text && !done.by ? chosen.text : label(done.option)
    return done.by ? t('answeredBy', { what, by: done.by }) : t('answered', { what })
  }
  if (chosen) return t('answering', { what: chosen.text || label(chosen.option) })
  return left <= 0 ? t('timeIsUp') : may ? '' : wait > 0 ? t('answersLater', { time: minutes(wait) }) : t('noAnswers')
}
