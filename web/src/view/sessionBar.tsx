import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { useAction } from './action'
import { Icon } from './icon'
import { ModelChoice } from './models'
import { Problem } from './panel'
import { sessionTitle } from './sessions'

/** SessionBar shows the session, the model, and the profile, if the agent has any of these. */
export function SessionBar({ client }: { client: Client }) {
  const { calls, sessions } = client.agent
  const { busy, problem, run } = useAction()
  const view = client.conversation.view.value
  if (!view && !calls.supports('models.list') && !calls.supports('profiles.list')) return null
  const current = sessions.current.value
  const elsewhere = view && sessions.loaded.value && current?.id !== view.session
  return (
    <div class="session-bar" role="group" aria-label={t('aboutSession')}>
      {view && <button type="button" class="round back" aria-label={t('showAll')} title={t('showAll')} onClick={() => void run(() => client.conversation.closeView())}><Icon name="back" /></button>}
      {view ? <h2 class="session-bar-title" dir="auto">{view.title || t('untitled')}</h2> : <p class="session-bar-title muted" dir="auto">{current && t('sessionNow', { title: sessionTitle(current) })}</p>}
      <ModelChoice client={client} />
      {calls.supports('profiles.list') && <Profiles client={client} />}
      {elsewhere && (
        <p class="session-bar-note" role="status"><span dir="auto">{current ? t('nextMessageGoesTo', { title: sessionTitle(current) }) : t('nextMessageStartsSession')}</span>{' '}
          {current && <button type="button" class="small" disabled={busy} onClick={() => void run(() => sessions.open(current))}>{t('openSession')}</button>}
        </p>
      )}
      {problem && <Problem text={problem} />}
    </div>
  )
}

/** Profiles loads the profile choice on demand, because few agents have several. */
function Profiles({ client }: { client: Client }) {
  const [Choice, setChoice] = useState<ComponentType<{ client: Client }>>()
  useEffect(() => void import('./profiles').then(({ ProfileChoice }) => setChoice(() => ProfileChoice), () => {}), []) // a page without a network loads it the next time
  return Choice ? <Choice client={client} /> : null
}
