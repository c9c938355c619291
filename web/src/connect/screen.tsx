import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { deviceName } from '../keep/profile'
import { addressHere } from '../talk/entrance'
import { enter, talk } from '../talk/here'
import { Avatar } from '../view/avatar'
import { Chat } from '../view/chat'
import { explain } from '../view/explain'
import { t } from '../words/words'
import { away, busyWithSetup, invite, look, setup } from './api'

/** Direct picks the screen of the direct client: its setup, or the conversation. */
export function Direct() {
  const here = talk.value
  const state = setup.value
  const agent = here?.status.value.agent
  useEffect(() => void look(), [agent]) // an agent that went away may want a credential
  if (!state) {
    if (away.value === '') return <main class="screen" aria-busy="true" />
    return here && away.value === 'gone' ? <Chat talk={here} key={here.profile.id} /> : <Closed />
  }
  if (state.step !== 'done' || busyWithSetup.value) return <Setup />
  if (!here || here.status.value.state === 'noAccess') return <Entering />
  return <Chat talk={here} key={here.profile.id} />
}

/** The setup is needed once, so it is not in what every start loads. */
function Setup() {
  const [Wizard, setWizard] = useState<{ View: FunctionComponent }>()
  useEffect(() => {
    let gone = false
    void import('./wizard').then(({ Wizard }) => gone || setWizard({ View: Wizard }))
    return () => void (gone = true)
  }, [])
  return Wizard ? <Wizard.View /> : <main class="screen" aria-busy="true" />
}

/** Closed says that this page cannot reach its program. */
function Closed() {
  return (
    <main class="screen welcome">
      <div class="card-panel">
        <Avatar state="sleeping" />
        <h1>{t('setClosed')}</h1>
        <p>{t(away.value === 'gone' ? 'setClosedText' : 'setStrangerText')}</p>
        <p><code dir="ltr">hermes-mobile app</code></p>
        <button type="button" class="primary wide" onClick={() => void look()}>{t('retryNow')}</button>
      </div>
    </main>
  )
}

/** Entering gets this page's device in: whoever has the page may. */
function Entering() {
  const [problem, setProblem] = useState('')
  const go = () => {
    setProblem('')
    invite()
      .then((pair) => enter({ pair, url: addressHere() }, deviceName(), ''))
      .catch((error: unknown) => setProblem(explain(error)))
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
