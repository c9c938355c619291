import { DisplayName, textWithNames } from '../view/displayName'
import { t, type Key } from '../i18n/i18n'
import type { Delivery } from './api'
import { deliveries, filter, overview } from './state'
import { deviceName, dateTime } from './format'

const states: Record<string, Key> = { queued: 'adminQueued', sent: 'adminSent', delivered: 'adminDelivered', seen: 'adminSeenState', expired: 'adminExpired' }
const sources: Record<string, Key> = { deliver: 'adminByDeliver', cron: 'adminByCron' }
const tones: Record<string, string> = { queued: 'wait', delivered: 'good', seen: 'good', expired: 'bad' }

const label = (words: Record<string, Key>, name: string) => (words[name] ? t(words[name]) : name)

/** Deliveries lists the messages that programs and jobs sent to devices, newest first. */
export function Deliveries() {
  const list = deliveries.value
  const { device, state } = filter.value
  return (
    <>
      <div class="admin-filter">
        <label>{t('adminState')}
          <select value={state} onChange={(e) => (filter.value = { device, state: e.currentTarget.value })}>
            <option value="">{t('adminAll')}</option>
            {Object.entries(states).map(([name, key]) => <option key={name} value={name}>{t(key)}</option>)}
          </select>
        </label>
        <label>{t('adminDevice')}
          <select value={device} onChange={(e) => (filter.value = { state, device: e.currentTarget.value })}>
            <option value="">{t('adminAll')}</option>
            {overview.value!.devices.map(({ id }) => <option key={id} value={id}>{deviceName(id)}</option>)}
          </select>
        </label>
      </div>
      {list?.length === 0 && <p class="muted">{t('adminNoDeliveries')}</p>}
      <ul class="admin-rows" aria-busy={!list}>{list?.map((one) => <Row key={one.number} delivery={one} />)}</ul>
    </>
  )
}

function Row({ delivery: d }: { delivery: Delivery }) {
  const last = d.expired_at ?? d.seen_at ?? d.delivered_at ?? d.sent_at
  return (
    <li class="admin-row">
      <div class="admin-row-head">
        <strong><DisplayName of={d.job || d.id || label(sources, d.source)} /></strong>
        <span class={'admin-badge ' + (tones[d.state] ?? '')}>{label(states, d.state)}</span>
      </div>
      <p class="muted">{[label(sources, d.source), d.sender].filter(Boolean).map((one) => <><bdi>{one}</bdi> · </>)}{textWithNames('adminTo', { name: deviceName(d.device) })}</p>
      <p class="muted"><time dateTime={d.at}>{dateTime(d.at)}</time>{last && <> → <time dateTime={last}>{dateTime(last)}</time></>}</p>
    </li>
  )
}
