import { useState } from 'preact/hooks'
import type { Session } from '../agent/sessions'
import type { Talk } from '../talk/talk'
import { count, t } from '../words/words'
import { useAct } from './act'
import { date } from './clock'
import { ask } from './dialog'
import { explain } from './explain'
import { Icon } from './icon'
import { announce, inform } from './notice'
import { Problem } from './panel'

/** The longest title that Hermes takes, in characters. */
const TITLE = 100

export function titleOf({ title = '', preview = '' }: { title?: string; preview?: string }): string {
  return title || preview || t('untitled')
}

/** Sessions lists the sessions of the gateway. One is the current one, and the conversation can go on in any of them. */
export function Sessions({ talk, done = () => {} }: { talk: Talk; done?: () => void }) {
  const { calls, sessions } = talk.agent
  const [sought, setSought] = useState('')
  const { busy, problem, act } = useAct()
  const list = sessions.list.value
  const found = list.filter((session) => fits(session, sought))
  const online = talk.status.value.state === 'online'
  const failed = sessions.problem.value
  const go = async (what: () => Promise<unknown>) => {
    if (!(await act(what))) return
    done()
    announce(t('sessionShown', { title: titleOf(talk.conversation.view.peek() ?? {}) }))
  }
  return (
    <section class="sessions" aria-label={t('sessions')} tabindex={-1}>
      {calls.has('sessions.create') && <button type="button" class="wide" disabled={!online || busy} onClick={() => void go(() => sessions.create())}><Icon name="add" />{t('newSession')}</button>}
      {(list.length > 5 || sought) && <input type="search" value={sought} aria-label={t('searchSessions')} placeholder={t('searchSessions')} dir="auto" onInput={(e) => setSought(e.currentTarget.value)} />}
      <Problem text={problem || (failed ? explain(failed) : '')} />
      <p class="hidden" role="status">{sought && count('sessionsFound', found.length)}</p>
      {found.length > 0 ? (
        <ul>
          {found.map((session) => <Line key={session.id} talk={talk} session={session} open={() => void go(() => sessions.open(session))} busy={busy || !online} />)}
        </ul>
      ) : (
        sessions.known.value && <p class="quiet nothing">{t(sought ? 'noSessionFound' : 'noSessions')}</p>
      )}
      {sessions.more.value && <button type="button" class="wide" disabled={!online || busy} onClick={() => void act(() => sessions.older())}>{t(sought ? 'searchOlder' : 'olderSessions')}</button>}
    </section>
  )
}

function fits({ title, preview }: Session, sought: string): boolean {
  const text = `${title}\n${preview}`.toLocaleLowerCase()
  return sought.toLocaleLowerCase().split(/\s+/).every((word) => text.includes(word))
}

function Line({ talk, session, open, busy }: { talk: Talk; session: Session; open: () => void; busy: boolean }) {
  const { calls, sessions } = talk.agent
  const [more, setMore] = useState(false)
  const title = titleOf(session)
  const at = Date.parse(session.at)
  const acts = (['rename', 'fork', 'delete'] as const).filter((what) => calls.has('sessions.' + what))
  const done = <T,>(what: T) => (setMore(false), what)
  const rename = () => ask({
    title: t('renameSession'), label: t('rename'), field: { label: t('sessionTitle'), value: session.title, longest: TITLE },
    run: async (title) => done((await sessions.rename(session, title.trim()), true)),
  })
  const fork = async () => {
    const copy = await sessions.fork(session)
    inform(t('forked', { title: titleOf(copy) }))
  }
  const remove = () => ask({
    title: t('deleteSession'), text: t('deleteSessionSure', { title }), label: t('delete'), danger: true, back: '.sessions', run: async () => done((await sessions.remove(session), true)),
  })
  const { problem, act } = useAct()
  return (
    <li class={session.current ? 'current' : ''} onKeyDown={(e) => e.key === 'Escape' && more && (e.preventDefault(), setMore(false))}>
      <div class="session">
        <button type="button" class="session-open" aria-current={session.current ? 'true' : undefined} disabled={busy} onClick={open}>
          <b dir="auto">{title}</b>
          {session.title && session.preview && session.preview !== session.title && <span class="quiet" dir="auto">{session.preview}</span>}
          <small>
            {session.current && <span class="now">{t('currentSession')}</span>}
            {at > 0 && <time dateTime={session.at}>{date(at)}</time>}
            <span>{count('messagesIn', session.messages)}</span>
            {session.source !== 'api_server' && <span dir="auto">{session.source}</span>}
          </small>
        </button>
        {acts.length > 0 && <button type="button" class="round" aria-label={t('sessionActions', { title })} aria-expanded={more} onClick={() => setMore(!more)}><Icon name="more" /></button>}
      </div>
      {more && (
        <div class="session-acts" role="group" aria-label={t('sessionActions', { title })}>
          {acts.includes('rename') && <button type="button" class="small" disabled={busy} onClick={rename}>{t('rename')}</button>}
          {acts.includes('fork') && <button type="button" class="small" disabled={busy} onClick={async () => (await act(fork)) && setMore(false)}>{t('fork')}</button>}
          {acts.includes('delete') && <button type="button" class="small danger" disabled={busy} onClick={remove}>{t('delete')}</button>}
          <Problem text={problem} />
        </div>
      )}
    </li>
  )
}
