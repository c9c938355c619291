import { Name, sentence } from '../view/name'
import { t, type Key } from '../words/words'
import type { Delivery } from './api'
import { deliveries, filter, overview } from './state'
import { called, moment } from './format'

const states: Record<string, Key> = { queued: 'ownQueued', sent: 'ownSent', delivered: 'ownDelivered', seen: 'ownSeenState', expired: 'ownExpired' }
const sources: Record<string, Key> = { deliver: 'ownByDeliver', cron: 'ownByCron' }
const tones: Record<string, string> = { queued: 'wait', delivered: 'good', seen: 'good', expired: 'bad' }

const word = (words: Record<string, Key>, name: string) => (words[name] ? t(words[name]) : name)

/** Deliveries lists what went to devices without having been asked for, the newest first. */
export function Deliveries() {
  const list = deliveries.value
  const { device, state } = filter.value
  return (
    <>
      <div class="own-filter">
        <label>{t('ownState')}
          <select value={state} onChange={(e) => (filter.value = { device, state: e.currentTarget.value })}>
            <option value="">{t('ownAll')}</option>
            {Object.entries(states).map(([name, key]) => <option key={name} value={name}>{t(key)}</option>)}
          </select>
        </label>
        <label>{t('ownDevice')}
          <select value={device} onChange={(e) => (filter.value = { state, device: e.currentTarget.value })}>
            <option value="">{t('ownAll')}</option>
            {overview.value!.devices.map(({ id }) => <option key={id} value={id}>{called(id)}</option>)}
          </select>
        </label>
      </div>
      {list?.length === 0 && <p class="quiet">{t('ownNoDeliveries')}</p>}
      <ul class="own-rows" aria-busy={!list}>{list?.map((one) => <Row key={one.number} delivery={one} />)}</ul>
    </>
  )
}

function Row({ delivery: d }: { delivery: Delivery }) {
  const last = d.expired_at ?? d.seen_at ?? d.delivered_at ?? d.sent_at
  return (
    <li class="own-row">
      <div class="own-row-head">
        <strong><Name of={d.job || d.id || word(sources, d.source)} /></strong>
        <span class={'own-badge ' + (tones[d.state] ?? '')}>{word(states, d.state)}</span>
      </div>
      <p class="quiet">{[word(sources, d.source), d.sender].filter(Boolean).map((one) => <><bdi>{one}</bdi> · </>)}{sentence('ownTo', { name: called(d.device) })}</p>
      <p class="quiet"><time dateTime={d.at}>{moment(d.at)}</time>{last && <> → <time dateTime={last}>{moment(last)}</time></>}</p>
    </li>
  )
}
