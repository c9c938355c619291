import { signal } from '@preact/signals'
import { takeOver } from '../conversation/currentClient'
import type { Client } from '../conversation/client'
import { count, t } from '../i18n/i18n'
import { useNow } from './clock'
import { errorText } from './errorText'
import { pairingAgain } from './state'

/** Whether the browser believes that it has a network. */
const browserOnline = signal(navigator.onLine)
addEventListener('online', () => (browserOnline.value = true))
addEventListener('offline', () => (browserOnline.value = false))

/** queuedCount counts the messages that wait for the agent. */
function queuedCount(client: Client): number {
  return client.conversation.order.value.filter((key) => client.conversation.signalFor(key)?.value.progress === 'queued').length
}

/** connectionState returns the state of the connection as text, and its tone. */
export function connectionState(client: Client): { tone: 'good' | 'wait' | 'bad'; text: string } {
  const { state, agent } = client.status.value
  if (state === 'online') {
    if (agent === 'away') return { tone: 'wait', text: t('agentOffline') }
    const { typing, avatar } = client.activity.value
    return { tone: 'good', text: typing || avatar !== 'idle' ? t(avatar === 'speaking' ? 'speaking' : 'thinking') : t('online') }
  }
  if (state === 'noAccess') return { tone: 'bad', text: t('noAccess') }
  if (state === 'replaced') return { tone: 'wait', text: t('openElsewhere') }
  if (!browserOnline.value) return { tone: 'wait', text: t('offline') }
  return { tone: 'wait', text: t(state === 'waiting' ? 'noConnection' : 'connecting') }
}

/**
 * ConnectionNotice says what is wrong with the connection and what to do. It is empty if all is
 * well.
 */
export function ConnectionNotice({ client }: { client: Client }) {
  return <div class="connection" role="status"><ConnectionLine client={client} /></div>
}

function ConnectionLine({ client }: { client: Client }) {
  const { state, until, error, agent, unconfirmed } = client.status.value
  const now = useNow(state === 'waiting' && until > 0)
  const kept = unconfirmed > 0 ? ' ' + count('unsent', unconfirmed) : ''
  const again = <button type="button" class="small" onClick={() => client.device.reconnect()}>{t('retryNow')}</button>
  switch (state) {
    case 'online': {
      if (agent !== 'away') return null
      const n = queuedCount(client)
      return <p class="connection-line">{t('agentOfflineText')}{n > 0 && ' ' + count('queued', n)}</p>
    }
    case 'replaced':
      return <p class="connection-line">{t('replaced')} <button type="button" class="small" onClick={() => void takeOver()}>{t('useHere')}</button></p>
    case 'noAccess':
      return (
        <p class="connection-line bad"><span dir="auto">{t('noAccessText')} {errorText(error ?? '')}</span> {again}
          <button type="button" class="small" onClick={() => (pairingAgain.value = true)}>{t('pairAgain')}</button>
        </p>
      )
    case 'waiting':
      return (
        <p class="connection-line">{browserOnline.value ? t(error ? 'unreachable' : 'interrupted') : t('offlineText')}{kept}{' '}
          {browserOnline.value && until > 0 && <span class="muted" aria-hidden="true">{count('nextTry', Math.max(0, Math.ceil((until - now) / 1000)))} </span>}
          {again}
        </p>
      )
    case 'connecting':
      return error || kept ? <p class="connection-line">{t(error ? 'unreachable' : 'connecting')}{kept}</p> : null
    case 'closed':
      return null
  }
}
