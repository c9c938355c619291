import { useState } from 'preact/hooks'
import type { Session } from '../agent/sessions'
import type { Client } from '../conversation/client'
import { count, t } from '../i18n/i18n'
import { useAction } from './action'
import { formatDate } from './clock'
import { openDialog } from './dialog'
import { errorText } from './errorText'
import { Icon } from './icon'
import { announce, showToast } from './toast'
import { Problem } from './panel'

/** The maximum length of a title in Hermes, in characters. */
const MAX_TITLE = 100

export function sessionTitle({ title = '', preview = '' }: { title?: string; preview?: string }): string {
  return title || preview || t('untitled')
}

/** SessionList lists the Hermes sessions. The conversation can continue in any of them. */
export function SessionList({ client, done = () => {} }: { client: Client; done?: () => void }) {
  const { calls, sessions } = client.agent
  const [query, setSought] = useState('')
  const { busy, problem, run } = useAction()
  const list = sessions.list.value
  const found = list.filter((session) => matches(session, query))
  const online = client.status.value.state === 'online'
  const failed = sessions.problem.value
  const go = async (what: () => Promise<unknown>) => {
    if (!(await run(what))) return
    done()
    announce(t('sessionShown', { title: sessionTitle(client.conversation.view.peek() ?? {}) }))
  }
  return (
    <section class="sessions" aria-label={t('sessions')} tabindex={-1}>
      {calls.supports('sessions.create') && <button type="button" class="wide" disabled={!online || busy} onClick={() => void go(() => sessions.create())}><Icon name="add" />{t('newSession')}</button>}
      {(list.length > 5 || query) && <input type="search" value={query} aria-label={t('searchSessions')} placeholder={t('searchSessions')} dir="auto" onInput={(e) => setSought(e.currentTarget.value)} />}
      <Problem text={problem || (failed ? errorText(failed) : '')} />
      <p class="hidden" role="status">{query && count('sessionsFound', found.length)}</p>
      {found.length > 0 ? (
        <ul>
          {found.map((session) => <SessionRow key={session.id} client={client} session={session} open={() => void go(() => sessions.open(session))} busy={busy || !online} />)}
        </ul>
      ) : (
        sessions.loaded.value && <p class="muted empty-list">{t(query ? 'noSessionFound' : 'noSessions')}</p>
      )}
      {sessions.hasMore.value && <button type="button" class="wide" disabled={!online || busy} onClick={() => void run(() => sessions.loadOlder())}>{t(query ? 'searchOlder' : 'olderSessions')}</button>}
    </section>
  )
}

function matches({ title, preview }: Session, query: string): boolean {
  const text = `${title}\n${preview}`.toLocaleLowerCase()
  return query.toLocaleLowerCase().split(/\s+/).every((word) => text.includes(word))
}

function SessionRow({ client, session, open, busy }: { client: Client; session: Session; open: () => void; busy: boolean }) {
  const { calls, sessions } = client.agent
  const [more, setMore] = useState(false)
  const title = sessionTitle(session)
  const at = Date.parse(session.at)
  const acts = (['rename', 'fork', 'delete'] as const).filter((what) => calls.supports('sessions.' + what))
  const done = <T,>(what: T) => (setMore(false), what)
  const rename = () => openDialog({
    title: t('renameSession'), label: t('rename'), field: { label: t('sessionTitle'), value: session.title, longest: MAX_TITLE },
    run: async (title) => done((await sessions.rename(session, title.trim()), true)),
  })
  const fork = async () => {
    const copy = await sessions.fork(session)
    showToast(t('forked', { title: sessionTitle(copy) }))
  }
  const remove = () => openDialog({
    title: t('deleteSession'), text: t('deleteSessionConfirm', { title }), label: t('delete'), danger: true, back: '.sessions', run: async () => done((await sessions.remove(session), true)),
  })
  const { problem, run } = useAction()
  return (
    <li class={session.current ? 'current' : ''} onKeyDown={(e) => e.key === 'Escape' && more && (e.preventDefault(), setMore(false))}>
      <div class="session">
        <button type="button" class="session-open" aria-current={session.current ? 'true' : undefined} disabled={busy} onClick={open}>
          <b dir="auto">{title}</b>
          {session.title && session.preview && session.preview !== session.title && <span class="muted" dir="auto">{session.preview}</span>}
          <small>
            {session.current && <span class="current-badge">{t('currentSession')}</span>}
            {at > 0 && <time dateTime={session.at}>{formatDate(at)}</time>}
            <span>{count('messagesIn', session.messages)}</span>
            {session.source !== 'api_server' && <span dir="auto">{session.source}</span>}
          </small>
        </button>
        {acts.length > 0 && <button type="button" class="round" aria-label={t('sessionActions', { title })} aria-expanded={more} onClick={() => setMore(!more)}><Icon name="more" /></button>}
      </div>
      {more && (
        <div class="session-acts" role="group" aria-label={t('sessionActions', { title })}>
          {acts.includes('rename') && <button type="button" class="small" disabled={busy} onClick={rename}>{t('rename')}</button>}
          {acts.includes('fork') && <button type="button" class="small" disabled={busy} onClick={async () => (await run(fork)) && setMore(false)}>{t('fork')}</button>}
          {acts.includes('delete') && <button type="button" class="small danger" disabled={busy} onClick={remove}>{t('delete')}</button>}
          <Problem text={problem} />
        </div>
      )}
    </li>
  )
}
