import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { useAct } from './act'
import { Icon } from './icon'
import { ModelChoice } from './models'
import { Problem } from './panel'
import { titleOf } from './sessions'

/** Bar says which session is shown, and which model and profile answer. It is there where the agent has any of these. */
export function Bar({ talk }: { talk: Talk }) {
  const { calls, sessions } = talk.agent
  const { busy, problem, act } = useAct()
  const view = talk.conversation.view.value
  if (!view && !calls.has('models.list') && !calls.has('profiles.list')) return null
  const current = sessions.current.value
  const elsewhere = view && sessions.known.value && current?.id !== view.session
  return (
    <div class="bar" role="group" aria-label={t('aboutSession')}>
      {view && <button type="button" class="round back" aria-label={t('showAll')} title={t('showAll')} onClick={() => void act(() => talk.conversation.leave())}><Icon name="back" /></button>}
      {view ? <h2 class="bar-title" dir="auto">{view.title || t('untitled')}</h2> : <p class="bar-title quiet" dir="auto">{current && t('sessionNow', { title: titleOf(current) })}</p>}
      <ModelChoice talk={talk} />
      {calls.has('profiles.list') && <Profiles talk={talk} />}
      {elsewhere && (
        <p class="bar-note" role="status"><span dir="auto">{current ? t('goesOnIn', { title: titleOf(current) }) : t('goesOnAnew')}</span>{' '}
          {current && <button type="button" class="small" disabled={busy} onClick={() => void act(() => sessions.open(current))}>{t('showIt')}</button>}
        </p>
      )}
      {problem && <Problem text={problem} />}
    </div>
  )
}

/** Profiles loads what shows them: few agents have several. */
function Profiles({ talk }: { talk: Talk }) {
  const [Choice, setChoice] = useState<ComponentType<{ talk: Talk }>>()
  useEffect(() => void import('./profiles').then(({ ProfileChoice }) => setChoice(() => ProfileChoice), () => {}), []) // a page without a network has it the next time
  return Choice ? <Choice talk={talk} /> : null
}
