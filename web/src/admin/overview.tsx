import { sentence } from '../view/name'
import { count, t } from '../words/words'
import type { Gateway } from './api'
import { State } from './badge'
import { overview, trouble } from './state'
import { ago, moment, number } from './format'

/** Glance is the state of the server in numbers, its agent and its gateways. */
export function Glance() {
  const { status, totals, devices } = overview.value!
  const gateways = status.relay?.Gateways ?? []
  const waiting = devices.reduce((sum, device) => sum + device.waiting, 0)
  const total = (name: string) => number(totals?.[name] ?? 0)
  return (
    <>
      <p class={trouble.value ? 'own-state bad' : 'own-state good'}>
        {trouble.value ? <a href="#/doctor">{count('ownTrouble', trouble.value)}</a> : t('ownWell')}
      </p>
      <dl class="own-numbers">
        <Figure name={t('ownConnected')} value={`${number(status.connected)} / ${number(status.devices)}`} />
        <Figure name={t('ownConnections')} value={total('device_connections')} />
        <Figure name={t('ownWaiting')} value={number(waiting)} />
        <Figure name={t('ownAccepted')} value={total('accepted_total')} />
        <Figure name={t('ownReplies')} value={total('replies_total')} />
        <Figure name={t('ownDeliveries')} value={total('deliveries_total')} />
        <Figure name={t('ownRefused')} value={total('refused_total')} />
        {status.relay && <Figure name={t('ownGateways')} value={`${gateways.filter((g) => g.Online).length} / ${gateways.length}`} />}
        {status.relay && <Figure name={t('ownGatewayEvents')} value={total('gateway_events_total')} />}
      </dl>
      <p class="quiet">{t('ownSince', { when: moment(status.started) })}</p>
      <h3>{t('ownAgent')}</h3>
      <ul class="own-rows">
        <li class="own-row">
          <div class="own-row-head"><strong dir="auto">{status.agent}</strong><State good={status.agent_online} text={t(status.agent_online ? 'ownOnline' : 'ownAway')} /></div>
          <p class="quiet" lang="en" dir="auto">{status.agent_detail}</p>
          <p class="quiet" lang="en" dir="auto">{status.agent_why}</p>
        </li>
        {gateways.map((gateway) => <GatewayRow key={gateway.ID} gateway={gateway} />)}
      </ul>
      <h3>{t('server')}</h3>
      <dl class="facts own-facts">
        <dt>{t('ownVersion')}</dt><dd dir="ltr">{status.version}</dd>
        <dt>{t('address')}</dt><dd dir="ltr">{status.address}</dd>
        {status.public_url && <><dt>{t('ownPublic')}</dt><dd dir="ltr">{status.public_url}</dd></>}
        <dt>TLS</dt><dd dir="auto">{status.tls.mode}{status.tls.not_after ? ' · ' + t('ownUntil', { when: moment(status.tls.not_after) }) : ''}</dd>
        <dt>{t('ownFolder')}</dt><dd dir="ltr">{status.data}</dd>
      </dl>
    </>
  )
}

function GatewayRow({ gateway: g }: { gateway: Gateway }) {
  const facts = [g.Version, g.From, t('ownTurns', { n: g.Turns }), t('ownEvents', { n: g.Waiting }), g.Wedges ? t('ownWedges', { n: g.Wedges }) : ''].filter(Boolean)
  return (
    <li class="own-row">
      <div class="own-row-head">
        <strong>{sentence('ownGateway', { name: g.Name || g.ID })}</strong>
        <State good={g.Online} text={g.Online ? t('ownOnlineSince', { when: ago(g.Since) }) : g.Seen ? t('ownAwaySince', { when: ago(g.Since) }) : t('ownNeverSeen')} />
      </div>
      <p class="quiet" dir="auto">{facts.join(' · ')}</p>
    </li>
  )
}

function Figure({ name, value }: { name: string; value: string }) {
  return <div><dt>{name}</dt><dd>{value}</dd></div>
}
