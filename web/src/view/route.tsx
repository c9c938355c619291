import { useEffect, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { useAction } from './action'
import { formatDay, formatTime } from './clock'
import { copyText } from './clipboard'
import { Panel, Problem } from './panel'

function routeName(kind: string | undefined): string {
  return kind === 'local' ? t('routeLocal') : kind === 'remote' ? t('routeRemote') : kind || t('routeNone')
}

/** RouteButton shows the route to the agent's gateway and opens its details. */
export function RouteButton({ client }: { client: Client }) {
  const [open, setOpen] = useState(false)
  const route = client.agent.route.value
  if (!route || !client.agent.calls.supports('route.show')) return null
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="route" aria-haspopup="dialog" aria-label={t('routeIs', { name: routeName(route.kind) })} data-route={route.kind ?? ''} onClick={() => setOpen(true)}>{routeName(route.kind)}</button>
      <Panel title={t('route')} open={open} close={close}><RouteFacts client={client} /></Panel>
    </>
  )
}

function RouteFacts({ client }: { client: Client }) {
  const { problem, run } = useAction()
  const [copied, setCopied] = useState('')
  useEffect(() => void run(() => client.agent.loadRoute()), [client])
  const route = client.agent.route.value
  if (!route) return <Problem text={problem} />
  const { kind, reason, since, version, diagnostics, jobs } = route
  const at = Date.parse(since ?? '')
  return (
    <>
      <Problem text={problem} />
      <dl class="facts">
        <dt>{t('routeLabel')}</dt><dd>{routeName(kind)}</dd>
        {at > 0 && <><dt>{t('since')}</dt><dd>{formatDay(at)}, {formatTime(at)}</dd></>}
        {version && <><dt>{t('gatewayVersion')}</dt><dd dir="ltr">{version}</dd></>}
        {(jobs === 'off' || jobs === 'allowed') && <><dt>{t('jobs')}</dt><dd>{t(jobs === 'off' ? 'jobsOff' : 'jobsAllowed')}</dd></>}
      </dl>
      {reason && <p class="reason" dir="auto">{reason}</p>}
      <section class="diagnostics">
        <h3 id="diagnostics">{t('diagnostics')}</h3>
        <p class="muted">{t('diagnosticsText')}</p>
        <pre class="shell" tabindex={0} role="region" aria-labelledby="diagnostics" dir="ltr">{diagnostics}</pre>
        <button type="button" class="wide" onClick={async () => setCopied(t((await copyText(diagnostics)) ? 'copied' : 'notCopied'))}>{t('copyDiagnostics')}</button>
        <p class="muted" role="status">{copied}</p>
      </section>
    </>
  )
}
