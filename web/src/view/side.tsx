import { useEffect, useState } from 'preact/hooks'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { State } from './chat'
import { day, time } from './clock'
import { Face } from './face'
import { Icon } from './icon'

interface Other {
  id: string
  name: string
  connected: boolean
  seen_at?: string
}

/** Side is the pane beside the conversation: the agent, and the person's other devices where there are some. */
export function Side({ talk, openSettings }: { talk: Talk; openSettings: () => void }) {
  const { state, capabilities, approved } = talk.status.value
  const [others, setOthers] = useState<Other[]>([])
  const asks = state === 'online' && approved && capabilities.call.includes('devices.list')
  useEffect(() => {
    if (!asks) return
    const end = new AbortController()
    talk.device.call<{ devices: Other[] }>('devices.list', {}, { signal: end.signal }).then(
      ({ devices }) => setOthers(devices.filter((device) => device.id !== talk.profile.id)),
      () => {}, // the pane stays as it is
    )
    return () => end.abort()
  }, [talk, asks])
  return (
    <aside class="side" aria-label={t('about')}>
      <Face talk={talk} />
      <h1>{t('agent')}</h1>
      <State talk={talk} />
      {others.length > 0 && (
        <section>
          <h2>{t('otherDevices')}</h2>
          <ul class="devices">
            {others.map((device) => (
              <li key={device.id}>
                <span dir="auto">{device.name || device.id}</span>
                <small>{device.connected ? t('deviceOnline') : device.seen_at ? `${day(Date.parse(device.seen_at))}, ${time(Date.parse(device.seen_at))}` : ''}</small>
              </li>
            ))}
          </ul>
        </section>
      )}
      <button type="button" class="side-settings" onClick={openSettings}><Icon name="settings" />{t('settings')}</button>
    </aside>
  )
}
