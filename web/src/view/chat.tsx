import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { SessionBar } from './sessionBar'
import { ErrorBoundary } from './errorBoundary'
import { Composer } from './composer'
import { ConnectionNotice } from './connection'
import { Dialog } from './dialog'
import { AgentAvatar } from './agentAvatar'
import { Icon } from './icon'
import { JobsPanel } from './jobs'
import { MessageList } from './messageList'
import { useMediaQuery } from './mediaQuery'
import { Panel } from './panel'
import { SessionList } from './sessions'
import { Settings } from './settings'
import { Sidebar } from './sidebar'
import { canWrite } from './state'
import { StatusLine } from './statusLine'

/** Chat is the conversation: one column on a phone, with a sidebar on a wide screen. */
export function Chat({ client }: { client: Client }) {
  const wide = useMediaQuery('(min-width: 60rem)')
  const settings = useRef<HTMLDialogElement>(null)
  const [drawer, setDrawer] = useState(false)
  const [jobs, setJobs] = useState(false)
  const { calls } = client.agent
  const lists = calls.supports('sessions.list')
  const plans = calls.supports('jobs.list')
  const open = () => settings.current?.showModal()
  const openJobs = plans ? () => { setDrawer(false); setJobs(true) } : undefined
  const openDrawer = () => {
    if (lists) void client.agent.sessions.refresh()
    setDrawer(true)
  }
  return (
    <div class={wide ? 'wide-layout' : 'narrow-layout'}>
      {wide && <ErrorBoundary resetKey={client} fallback={() => <aside class="sidebar" />}><Sidebar client={client} openSettings={open} openJobs={openJobs} /></ErrorBoundary>}
      <main class="chat">
        {!wide && (
          <header class="chat-header">
            {(lists || plans) && <button type="button" class="round" aria-label={t(lists ? 'sessions' : 'more')} aria-haspopup="dialog" onClick={openDrawer}><Icon name="menu" /></button>}
            <OptionalPart of={client}><AgentAvatar client={client} /></OptionalPart>
            <div class="chat-header-text"><h1>{t('agent')}</h1><StatusLine client={client} /></div>
            <button type="button" class="round" aria-label={t('settings')} onClick={open}><Icon name="settings" /></button>
          </header>
        )}
        <OptionalPart of={client}><SessionBar client={client} /></OptionalPart>
        <ConnectionNotice client={client} />
        <MessageList client={client} key={client.conversation.view.value?.session} />
        {canWrite(client) ? <Composer client={client} /> : <p class="read-only" role="status">{t('readOnly')}</p>}
      </main>
      <OptionalPart of={client}><Settings client={client} dialog={settings} /></OptionalPart>
      {!wide && (
        <Panel title={t(lists ? 'sessions' : 'more')} open={drawer} close={() => setDrawer(false)} drawer>
          {lists && <SessionList client={client} done={() => setDrawer(false)} />}
          {openJobs && <button type="button" class="wide" onClick={openJobs}><Icon name="clock" />{t('jobs')}</button>}
        </Panel>
      )}
      {plans && <JobsPanel client={client} open={jobs} close={() => setJobs(false)} />}
      <Dialog />
    </div>
  )
}

/**
 * OptionalPart holds a part around the conversation. If it can't be drawn, the conversation stays
 * usable without it.
 */
function OptionalPart({ of, children }: { of: Client; children: ComponentChildren }) {
  return <ErrorBoundary resetKey={of} fallback={() => null}>{children}</ErrorBoundary>
}
