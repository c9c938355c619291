import { useEffect, useState } from 'preact/hooks'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { useAct } from './act'
import { day, time } from './clock'
import { copy } from './copy'
import { Panel, Problem } from './panel'

function nameOf(kind: string | undefined): string {
  return kind === 'local' ? t('routeLocal') : kind === 'remote' ? t('routeRemote') : kind || t('routeNone')
}

/** Route says by which address the agent's gateway is reached, and opens what there is to know of that. */
export function Route({ talk }: { talk: Talk }) {
  const [open, setOpen] = useState(false)
  const route = talk.agent.route.value
  if (!route || !talk.agent.calls.has('route.show')) return null
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="route" aria-haspopup="dialog" aria-label={t('routeIs', { name: nameOf(route.kind) })} data-route={route.kind ?? ''} onClick={() => setOpen(true)}>{nameOf(route.kind)}</button>
      <Panel title={t('route')} open={open} close={close}><Facts talk={talk} /></Panel>
    </>
  )
}

function Facts({ talk }: { talk: Talk }) {
  const { problem, act } = useAct()
  const [copied, setCopied] = useState('')
  useEffect(() => void act(() => talk.agent.loadRoute()), [talk])
  const route = talk.agent.route.value
  if (!route) return <Problem text={problem} />
  const { kind, reason, since, version, diagnostics, jobs } = route
  const at = Date.parse(since ?? '')
  return (
    <>
      <Problem text={problem} />
      <dl class="facts">
        <dt>{t('routeNow')}</dt><dd>{nameOf(kind)}</dd>
        {at > 0 && <><dt>{t('since')}</dt><dd>{day(at)}, {time(at)}</dd></>}
        {version && <><dt>{t('gatewayVersion')}</dt><dd dir="ltr">{version}</dd></>}
        {(jobs === 'off' || jobs === 'allowed') && <><dt>{t('jobs')}</dt><dd>{t(jobs === 'off' ? 'jobsOff' : 'jobsAllowed')}</dd></>}
      </dl>
      {reason && <p class="reason" dir="auto">{reason}</p>}
      <section class="diagnostics">
        <h3 id="diagnostics">{t('diagnostics')}</h3>
        <p class="quiet">{t('diagnosticsText')}</p>
        <pre class="shell" tabindex={0} role="region" aria-labelledby="diagnostics" dir="ltr">{diagnostics}</pre>
        <button type="button" class="wide" onClick={async () => setCopied(t((await copy(diagnostics)) ? 'copied' : 'notCopied'))}>{t('copyDiagnostics')}</button>
        <p class="quiet" role="status">{copied}</p>
      </section>
    </>
  )
}
