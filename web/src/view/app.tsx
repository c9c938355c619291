import { useEffect } from 'preact/hooks'
import { invitation, starting, talk } from '../talk/here'
import { direct } from '../setup/api'
import { Direct } from '../setup/screen'
import { language, t } from '../words/words'
import { Boundary } from './boundary'
import { Chat } from './chat'
import { spoken } from './notice'
import { Notices } from './notices'
import { Waiting } from './waiting'
import { Welcome, pairingAgain } from './welcome'

/** App picks the screen: getting in, waiting for the owner, or the conversation. */
export function App() {
  const lang = language.value
  useEffect(() => {
    document.documentElement.lang = lang
    document.title = t('title')
  }, [lang])
  return (
    <>
      <Boundary of={talk.value} instead={() => <Broken />}><Screen /></Boundary>
      <Notices />
      <div class="hidden" role="status" aria-live="polite">{spoken.value}</div>
    </>
  )
}

/** Broken stands where a whole screen cannot be drawn. What was said is still on this device and at the server. */
function Broken() {
  return (
    <main class="screen"><div class="card-panel problem" role="alert"><h1>{t('brokenTitle')}</h1><p>{t('brokenText')}</p><button type="button" onClick={() => location.reload()}>{t('reload')}</button></div></main>
  )
}

function Screen() {
  if (starting.value) return <main class="screen" aria-busy="true" />
  if (direct) return <Direct />
  const here = talk.value
  if (!here || pairingAgain.value) return <Welcome invitation={invitation.value} />
  const { state, approved } = here.status.value
  const fresh = here.conversation.order.value.length === 0
  // A device that the owner has not let in, and which has nothing to show.
  if (!approved && state === 'online') return <Waiting talk={here} />
  if (!approved && fresh && here.status.value.agent !== '' && state !== 'noAccess' && state !== 'replaced') return <Waiting talk={here} />
  return <Chat talk={here} key={here.profile.id} />
}
