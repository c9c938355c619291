import { useEffect, useState } from 'preact/hooks'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { State } from './chat'
import { day, time } from './clock'
import { Face } from './face'
import { Icon } from './icon'
import { Name } from './name'
import { Sessions } from './sessions'

interface Other {
  id: string
  name: string
  connected: boolean
  seen_at?: string
}

/** Side is the pane beside the conversation: the agent, its sessions where it has some, and the person's other devices where there are some. */
export function Side({ talk, openSettings, openJobs }: { talk: Talk; openSettings: () => void; openJobs?: () => void }) {
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
  const lists = talk.agent.calls.has('sessions.list')
  return (
    <aside class={lists ? 'side listing' : 'side'} aria-label={t('about')}>
      <div class="side-head">
        <Face talk={talk} />
        <div class="side-words"><h1>{t('agent')}</h1><State talk={talk} /></div>
      </div>
      {lists && <Sessions talk={talk} />}
      {others.length > 0 && (
        <section class="side-devices">
          <h2>{t('otherDevices')}</h2>
          <ul class="devices">
            {others.map((device) => (
              <li key={device.id}>
                <Name of={device.name || device.id} />
                <small>{device.connected ? t('deviceOnline') : device.seen_at ? `${day(Date.parse(device.seen_at))}, ${time(Date.parse(device.seen_at))}` : ''}</small>
              </li>
            ))}
          </ul>
        </section>
      )}
      <div class="side-end">
        {openJobs && <button type="button" class="wide" onClick={openJobs}><Icon name="clock" />{t('jobs')}</button>}
        <button type="button" class="wide" onClick={openSettings}><Icon name="settings" />{t('settings')}</button>
      </div>
    </aside>
  )
}
