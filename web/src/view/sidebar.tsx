import { useEffect, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { StatusLine } from './statusLine'
import { formatDay, formatTime } from './clock'
import { AgentAvatar } from './agentAvatar'
import { Icon } from './icon'
import { DisplayName } from './displayName'
import { SessionList } from './sessions'

interface OtherDevice {
  id: string
  name: string
  connected: boolean
  seen_at?: string
}

/** Sidebar shows the agent, its sessions, and the user's other devices. */
export function Sidebar({ client, openSettings, openJobs }: { client: Client; openSettings: () => void; openJobs?: () => void }) {
  const { state, capabilities, approved } = client.status.value
  const [others, setOthers] = useState<OtherDevice[]>([])
  const asks = state === 'online' && approved && capabilities.call.includes('devices.list')
  useEffect(() => {
    if (!asks) return
    const end = new AbortController()
    client.device.call<{ devices: OtherDevice[] }>('devices.list', {}, { signal: end.signal }).then(
      ({ devices }) => setOthers(devices.filter((device) => device.id !== client.profile.id)),
      () => {}, // the sidebar stays as it is
    )
    return () => end.abort()
  }, [client, asks])
  const lists = client.agent.calls.supports('sessions.list')
  return (
    <aside class={lists ? 'sidebar listing' : 'sidebar'} aria-label={t('about')}>
      <div class="sidebar-head">
        <AgentAvatar client={client} />
        <div class="sidebar-text"><h1>{t('agent')}</h1><StatusLine client={client} /></div>
      </div>
      {lists && <SessionList client={client} />}
      {others.length > 0 && (
        <section class="sidebar-devices">
          <h2>{t('otherDevices')}</h2>
          <ul class="devices">
            {others.map((device) => (
              <li key={device.id}>
                <DisplayName of={device.name || device.id} />
                <small>{device.connected ? t('deviceOnline') : device.seen_at ? `${formatDay(Date.parse(device.seen_at))}, ${formatTime(Date.parse(device.seen_at))}` : ''}</small>
              </li>
            ))}
          </ul>
        </section>
      )}
      <div class="sidebar-end">
        {openJobs && <button type="button" class="wide" onClick={openJobs}><Icon name="clock" />{t('jobs')}</button>}
        <button type="button" class="wide" onClick={openSettings}><Icon name="settings" />{t('settings')}</button>
      </div>
    </aside>
  )
}
