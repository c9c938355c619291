import { textWithNames } from '../view/displayName'
import { count, t } from '../i18n/i18n'
import type { Gateway } from './api'
import { Badge } from './badge'
import { overview, issueCount } from './state'
import { relativeTime, dateTime, formatNumber } from './format'

/** OverviewSection shows the server's counters, its agent, and its gateways. */
export function OverviewSection() {
  const { status, totals, devices } = overview.value!
  const gateways = status.relay?.Gateways ?? []
  const waiting = devices.reduce((sum, device) => sum + device.waiting, 0)
  const total = (name: string) => formatNumber(totals?.[name] ?? 0)
  return (
    <>
      <p class={issueCount.value ? 'admin-state bad' : 'admin-state good'}>
        {issueCount.value ? <a href="#/doctor">{count('adminIssues', issueCount.value)}</a> : t('adminNoIssues')}
      </p>
      <dl class="admin-numbers">
        <Figure name={t('adminConnected')} value={`${formatNumber(status.connected)} / ${formatNumber(status.devices)}`} />
        <Figure name={t('adminConnections')} value={total('device_connections')} />
        <Figure name={t('adminWaiting')} value={formatNumber(waiting)} />
        <Figure name={t('adminAccepted')} value={total('accepted_total')} />
        <Figure name={t('adminReplies')} value={total('replies_total')} />
        <Figure name={t('adminDeliveries')} value={total('deliveries_total')} />
        <Figure name={t('adminRejected')} value={total('refused_total')} />
        {status.relay && <Figure name={t('adminGateways')} value={`${gateways.filter((g) => g.Online).length} / ${gateways.length}`} />}
        {status.relay && <Figure name={t('adminGatewayEvents')} value={total('gateway_events_total')} />}
      </dl>
      <p class="muted">{t('adminSince', { when: dateTime(status.started) })}</p>
      <h3>{t('adminAgent')}</h3>
      <ul class="admin-rows">
        <li class="admin-row">
          <div class="admin-row-head"><strong dir="auto">{status.agent}</strong><Badge good={status.agent_online} text={t(status.agent_online ? 'adminOnline' : 'adminOffline')} /></div>
          <p class="muted" lang="en" dir="auto">{status.agent_detail}</p>
          <p class="muted" lang="en" dir="auto">{status.agent_why}</p>
        </li>
        {gateways.map((gateway) => <GatewayRow key={gateway.ID} gateway={gateway} />)}
      </ul>
      <h3>{t('server')}</h3>
      <dl class="facts admin-facts">
        <dt>{t('adminVersion')}</dt><dd dir="ltr">{status.version}</dd>
        <dt>{t('address')}</dt><dd dir="ltr">{status.address}</dd>
        {status.public_url && <><dt>{t('adminPublic')}</dt><dd dir="ltr">{status.public_url}</dd></>}
        <dt>TLS</dt><dd dir="auto">{status.tls.mode}{status.tls.not_after ? ' · ' + t('adminUntil', { when: dateTime(status.tls.not_after) }) : ''}</dd>
        <dt>{t('adminFolder')}</dt><dd dir="ltr">{status.data}</dd>
      </dl>
    </>
  )
}

function GatewayRow({ gateway: g }: { gateway: Gateway }) {
  const facts = [g.Version, g.From, t('adminTurns', { n: g.Turns }), t('adminEvents', { n: g.Waiting }), g.Wedges ? t('adminStalls', { n: g.Wedges }) : ''].filter(Boolean)
  return (
    <li class="admin-row">
      <div class="admin-row-head">
        <strong>{textWithNames('adminGateway', { name: g.Name || g.ID })}</strong>
        <Badge good={g.Online} text={g.Online ? t('adminOnlineSince', { when: relativeTime(g.Since) }) : g.Seen ? t('adminOfflineSince', { when: relativeTime(g.Since) }) : t('adminNeverSeen')} />
      </div>
      <p class="muted" dir="auto">{facts.join(' · ')}</p>
    </li>
  )
}

function Figure({ name, value }: { name: string; value: string }) {
  return <div><dt>{name}</dt><dd>{value}</dd></div>
}
