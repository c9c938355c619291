import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Item } from '../talk/item'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { Face } from './face'
import { Composer } from './composer'
import { Connection, stateOf } from './connection'
import { Icon } from './icon'
import { List } from './list'
import { useMedia } from './media'
import { Settings } from './settings'
import { Side } from './side'

/** What the next message answers. */
export const answering = signal<Item | undefined>(undefined)

/** Chat is the conversation: on a phone one column, on a wide screen with a pane beside it. */
export function Chat({ talk }: { talk: Talk }) {
  const wide = useMedia('(min-width: 60rem)')
  const settings = useRef<HTMLDialogElement>(null)
  const open = () => settings.current?.showModal()
  return (
    <div class={wide ? 'two' : 'one'}>
      {wide && <Side talk={talk} openSettings={open} />}
      <main class="chat">
        {!wide && (
          <header class="head">
            <Face talk={talk} />
            <div class="head-words"><h1>{t('agent')}</h1><State talk={talk} /></div>
            <button type="button" class="round" aria-label={t('settings')} onClick={open}><Icon name="settings" /></button>
          </header>
        )}
        <Connection talk={talk} />
        <List talk={talk} />
        <Composer talk={talk} />
      </main>
      <Settings talk={talk} dialog={settings} />
    </div>
  )
}

/** State is the connection in a word. */
export function State({ talk }: { talk: Talk }) {
  const { tone, text } = stateOf(talk)
  return <p class={`state ${tone}`} data-state={talk.status.value.state}><span class="dot" />{text}</p>
}
