import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Item } from '../talk/item'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { Bar } from './bar'
import { Boundary } from './boundary'
import { Composer } from './composer'
import { Connection, stateOf } from './connection'
import { Dialog } from './dialog'
import { Face } from './face'
import { Icon } from './icon'
import { Jobs } from './jobs'
import { List } from './list'
import { useMedia } from './media'
import { Panel } from './panel'
import { Route } from './route'
import { Sessions } from './sessions'
import { Settings } from './settings'
import { Side } from './side'

/** What the next message answers. */
export const answering = signal<Item | undefined>(undefined)

/** mayWrite is what the owner lets this device do; before the first contact nothing is known, and nothing is forbidden. */
export const mayWrite = ({ status }: Talk): boolean => status.value.agent === '' || status.value.capabilities.text

/** Chat is the conversation: on a phone one column, on a wide screen with a pane beside it. */
export function Chat({ talk }: { talk: Talk }) {
  const wide = useMedia('(min-width: 60rem)')
  const settings = useRef<HTMLDialogElement>(null)
  const [drawer, setDrawer] = useState(false)
  const [jobs, setJobs] = useState(false)
  const { calls } = talk.agent
  const lists = calls.has('sessions.list')
  const plans = calls.has('jobs.list')
  const open = () => settings.current?.showModal()
  const openJobs = plans ? () => { setDrawer(false); setJobs(true) } : undefined
  const openDrawer = () => {
    if (lists) void talk.agent.sessions.refresh()
    setDrawer(true)
  }
  return (
    <div class={wide ? 'two' : 'one'}>
      {wide && <Boundary of={talk} instead={() => <aside class="side" />}><Side talk={talk} openSettings={open} openJobs={openJobs} /></Boundary>}
      <main class="chat">
        {!wide && (
          <header class="head">
            {(lists || plans) && <button type="button" class="round" aria-label={t(lists ? 'sessions' : 'more')} aria-haspopup="dialog" onClick={openDrawer}><Icon name="menu" /></button>}
            <Beside of={talk}><Face talk={talk} /></Beside>
            <div class="head-words"><h1>{t('agent')}</h1><State talk={talk} /></div>
            <button type="button" class="round" aria-label={t('settings')} onClick={open}><Icon name="settings" /></button>
          </header>
        )}
        <Beside of={talk}><Bar talk={talk} /></Beside>
        <Connection talk={talk} />
        <List talk={talk} key={talk.conversation.view.value?.session} />
        {mayWrite(talk) ? <Composer talk={talk} /> : <p class="only-reads" role="status">{t('onlyReads')}</p>}
      </main>
      <Beside of={talk}><Settings talk={talk} dialog={settings} /></Beside>
      {!wide && (
        <Panel title={t(lists ? 'sessions' : 'more')} open={drawer} close={() => setDrawer(false)} drawer>
          {lists && <Sessions talk={talk} done={() => setDrawer(false)} />}
          {openJobs && <button type="button" class="wide" onClick={openJobs}><Icon name="clock" />{t('jobs')}</button>}
        </Panel>
      )}
      {plans && <Jobs talk={talk} open={jobs} close={() => setJobs(false)} />}
      <Dialog />
    </div>
  )
}

/** Beside holds what stands around the conversation: where it cannot be drawn it is left out, and the conversation goes on. */
function Beside({ of, children }: { of: Talk; children: ComponentChildren }) {
  return <Boundary of={of} instead={() => null}>{children}</Boundary>
}

/** State is the connection in a word, and the way that the agent is reached by where that is known. */
export function State({ talk }: { talk: Talk }) {
  const { tone, text } = stateOf(talk)
  return (
    <div class="state-line">
      <p class={`state ${tone}`} data-state={talk.status.value.state}><span class="dot" />{text}</p>
      <Route talk={talk} />
    </div>
  )
}
