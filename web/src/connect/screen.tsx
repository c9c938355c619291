import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { deviceName } from '../storage/profile'
import { socketAddress } from '../conversation/address'
import { pairDevice, currentClient } from '../conversation/currentClient'
import { Avatar } from '../view/avatar'
import { Chat } from '../view/chat'
import { errorText } from '../view/errorText'
import { t } from '../i18n/i18n'
import { lostReason, wizardOpen, requestPairingCode, loadState, setupState } from './api'

/** DirectClient chooses the screen of the direct client: its setup or the conversation. */
export function DirectClient() {
  const client = currentClient.value
  const state = setupState.value
  const agent = client?.status.value.agent
  useEffect(() => void loadState(), [agent]) // an agent that went offline may need a new credential
  if (!state) {
    if (lostReason.value === '') return <main class="screen" aria-busy="true" />
    return client && lostReason.value === 'gone' ? <Chat client={client} key={client.profile.id} /> : <ProgramLost />
  }
  if (state.step !== 'done' || wizardOpen.value) return <Setup />
  if (!client || client.status.value.state === 'noAccess') return <PairingPage />
  return <Chat client={client} key={client.profile.id} />
}

/** Most starts don't need the setup, so it is loaded on demand. */
function Setup() {
  const [Wizard, setWizard] = useState<{ View: FunctionComponent }>()
  useEffect(() => {
    let gone = false
    void import('./wizard').then(({ Wizard }) => gone || setWizard({ View: Wizard }))
    return () => void (gone = true)
  }, [])
  return Wizard ? <Wizard.View /> : <main class="screen" aria-busy="true" />
}

/** ProgramLost says that this page can't reach its program. */
function ProgramLost() {
  return (
    <main class="screen welcome">
      <div class="card-panel">
        <Avatar state="sleeping" />
        <h1>{t('programClosed')}</h1>
        <p>{t(lostReason.value === 'gone' ? 'programClosedText' : 'programUnknownBrowser')}</p>
        <p><code dir="ltr">hermes-mobile app</code></p>
        <button type="button" class="primary wide" onClick={() => void loadState()}>{t('retryNow')}</button>
      </div>
    </main>
  )
}

/** PairingPage pairs this page. The program gives a pairing code to any page it serves. */
function PairingPage() {
  const [problem, setProblem] = useState('')
  const go = () => {
    setProblem('')
    requestPairingCode()
      .then((pair) => pairDevice({ pair, url: socketAddress() }, deviceName(), ''))
      .catch((error: unknown) => setProblem(errorText(error)))
  }
  useEffect(go, [])
  if (!problem) return <main class="screen" aria-busy="true" aria-label={t('connecting')} />
  return (
    <main class="screen welcome">
      <div class="card-panel">
        <h1>{t('noAccess')}</h1>
        <p class="problem" role="alert">{problem}</p>
        <button type="button" class="primary wide" onClick={go}>{t('retryNow')}</button>
      </div>
    </main>
  )
}
