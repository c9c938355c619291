import { signal } from '@preact/signals'
import { takeOver } from '../talk/here'
import type { Talk } from '../talk/talk'
import { count, t } from '../words/words'
import { useNow } from './clock'
import { explain } from './explain'
import { pairingAgain } from './welcome'

/** Whether the browser has a network at all, as far as it knows. */
const network = signal(navigator.onLine)
addEventListener('online', () => (network.value = true))
addEventListener('offline', () => (network.value = false))

/** queued counts what waits for the agent. */
function queued(talk: Talk): number {
  return talk.conversation.order.value.filter((key) => talk.conversation.at(key)?.value.progress === 'queued').length
}

/** stateOf gives the word for the connection, and how good it is. */
export function stateOf(talk: Talk): { tone: 'good' | 'wait' | 'bad'; text: string } {
  const { state, agent } = talk.status.value
  if (state === 'online') {
    if (agent === 'away') return { tone: 'wait', text: t('agentAway') }
    const { typing, avatar } = talk.activity.value
    return { tone: 'good', text: typing || avatar !== 'idle' ? t(avatar === 'speaking' ? 'speaking' : 'thinking') : t('online') }
  }
  if (state === 'noAccess') return { tone: 'bad', text: t('noAccess') }
  if (state === 'replaced') return { tone: 'wait', text: t('elsewhere') }
  if (!network.value) return { tone: 'wait', text: t('offline') }
  return { tone: 'wait', text: t(state === 'waiting' ? 'noConnection' : 'connecting') }
}

/** Connection is what is wrong with the connection, and what to do. Nothing is there while all is well. */
export function Connection({ talk }: { talk: Talk }) {
  return <div class="lines" role="status"><Line talk={talk} /></div>
}

function Line({ talk }: { talk: Talk }) {
  const { state, until, error, agent, unconfirmed } = talk.status.value
  const now = useNow(state === 'waiting' && until > 0)
  const kept = unconfirmed > 0 ? ' ' + count('kept', unconfirmed) : ''
  const again = <button type="button" class="small" onClick={() => talk.device.reconnect()}>{t('retryNow')}</button>
  switch (state) {
    case 'online': {
      if (agent !== 'away') return null
      const n = queued(talk)
      return <p class="line">{t('agentAwayText')}{n > 0 && ' ' + count('queued', n)}</p>
    }
    case 'replaced':
      return <p class="line">{t('replaced')} <button type="button" class="small" onClick={() => void takeOver()}>{t('useHere')}</button></p>
    case 'noAccess':
      return (
        <p class="line bad"><span dir="auto">{t('noAccessText')} {explain(error ?? '')}</span> {again}
          <button type="button" class="small" onClick={() => (pairingAgain.value = true)}>{t('pairAgain')}</button>
        </p>
      )
    case 'waiting':
      return (
        <p class="line">{network.value ? t(error ? 'unreachable' : 'interrupted') : t('offlineText')}{kept}{' '}
          {network.value && until > 0 && <span class="quiet" aria-hidden="true">{count('nextTry', Math.max(0, Math.ceil((until - now) / 1000)))} </span>}
          {again}
        </p>
      )
    case 'connecting':
      return error || kept ? <p class="line">{t(error ? 'unreachable' : 'connecting')}{kept}</p> : null
    case 'closed':
      return null
  }
}
