import { useEffect } from 'preact/hooks'
import { openedInvitation, starting, currentClient } from '../conversation/currentClient'
import { isDirectClient } from '../connect/api'
import { DirectClient } from '../connect/screen'
import { language, t } from '../i18n/i18n'
import { ErrorBoundary } from './errorBoundary'
import { Chat } from './chat'
import { announcement } from './toast'
import { Toasts } from './toasts'
import { AwaitingApproval } from './approval'
import { pairingAgain } from './state'
import { Welcome } from './welcome'

/** App chooses the screen: pairing, approval, or the conversation. */
export function App() {
  const lang = language.value
  useEffect(() => {
    document.documentElement.lang = lang
    document.title = t('title')
  }, [lang])
  return (
    <>
      <ErrorBoundary resetKey={currentClient.value} fallback={() => <BrokenPage />}><Screen /></ErrorBoundary>
      <Toasts />
      <div class="hidden" role="status" aria-live="polite">{announcement.value}</div>
    </>
  )
}

/**
 * BrokenPage replaces a screen that can't be drawn. The messages are still on this device and at
 * the server.
 */
function BrokenPage() {
  return (
    <main class="screen"><div class="card-panel problem" role="alert"><h1>{t('pageErrorTitle')}</h1><p>{t('pageErrorText')}</p><button type="button" onClick={() => location.reload()}>{t('reload')}</button></div></main>
  )
}

function Screen() {
  if (starting.value) return <main class="screen" aria-busy="true" />
  if (isDirectClient) return <DirectClient />
  const client = currentClient.value
  if (!client || pairingAgain.value) return <Welcome invitation={openedInvitation.value} />
  const { state, approved } = client.status.value
  const fresh = client.conversation.order.value.length === 0
  // A device that isn't approved and has nothing to show.
  if (!approved && state === 'online') return <AwaitingApproval client={client} />
  if (!approved && fresh && client.status.value.agent !== '' && state !== 'noAccess' && state !== 'replaced') return <AwaitingApproval client={client} />
  return <Chat client={client} key={client.profile.id} />
}
