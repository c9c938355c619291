import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { copy } from '../view/copy'
import { minutes, useNow } from '../view/clock'
import { inform } from '../view/notice'
import { t } from '../words/words'
import type { Invited } from './api'
import { users, who } from './format'
import { act, overview } from './state'

/** The code that was made last, until it is put away or too old. */
const invited = signal<Invited | undefined>(undefined)

const DAY = 86_400
/** How long a token may be valid, in seconds. */
export const lives = [[0, 'ownNever'], [DAY, 'ownDay'], [30 * DAY, 'ownMonth'], [365 * DAY, 'ownYear']] as const

/** Invite makes a code for a device of a user who exists, or of a new one. */
export function Invite() {
  const [user, setUser] = useState('')
  const [trusted, setTrusted] = useState(false)
  const [seconds, setSeconds] = useState(0)
  const open = invited.value
  const known = users()
  const make = async (event: Event) => {
    event.preventDefault()
    const made = await act<Invited>('/pair', { user, trusted, seconds })
    if (made) invited.value = made.answer
  }
  return (
    <section class="own-row" aria-label={t('ownInvite')}>
      <p>{t('ownInviteHint')}</p>
      {open && <Code invited={open} />}
      <form class="own-filter" onSubmit={make}>
        <label>{t('ownInviteUser')}
          <select value={user} onChange={(e) => setUser(e.currentTarget.value)}>
            <option value="">{t('ownNewUser')}</option>
            {known.map((id) => <option key={id} value={id}>{who(id) === id ? id : `${who(id)} (${id})`}</option>)}
          </select>
        </label>
        <label>{t('ownTokenLife')}
          <select value={String(seconds)} onChange={(e) => setSeconds(Number(e.currentTarget.value))}>
            {lives.map(([life, words]) => <option key={life} value={String(life)}>{t(words)}</option>)}
          </select>
        </label>
        {user && (
          <label class="own-check"><input type="checkbox" role="switch" checked={trusted} onChange={(e) => setTrusted(e.currentTarget.checked)} /><span>{t('ownTrusted')}<small>{t('ownTrustedHint')}</small></span></label>
        )}
        <div class="own-actions"><button type="submit" class={open ? 'small' : 'primary'}>{t(open ? 'ownInviteNext' : 'ownInvite')}</button></div>
      </form>
    </section>
  )
}

function Code({ invited: { name, user, code, link, qr, expires_at, fingerprint, local } }: { invited: Invited }) {
  const left = (new Date(expires_at).getTime() - useNow(true)) / 1000
  const paired = overview.value!.paired.find((one) => one.code === name)
  if (paired) return <p class="own-paired" role="status" dir="auto">{t('ownPaired', { name: paired.name || paired.id, user: who(paired.user) })}</p>
  if (left <= 0) return <p role="status">{t('ownCodeOver')}</p>
  return (
    <div class="own-code">
      {/* Dark on light in every theme: not all cameras read it the other way around. */}
      <svg class="own-qr" viewBox={`0 0 ${qr.size} ${qr.size}`} shape-rendering="crispEdges" role="img" aria-label={t('ownQR')}>
        <rect width={qr.size} height={qr.size} fill="#fff" />
        <path d={qr.path} fill="#000" />
      </svg>
      <div class="own-code-words">
        <output class="code-big" dir="ltr" aria-label={t('pairingCode')}>{code}</output>
        <p dir="auto">{user ? t('ownCodeFor', { user: who(user) }) : t('ownCodeForNew')}</p>
        <p class="quiet">{t('timeLeft', { time: minutes(left) })}</p>
        {local && <p class="problem">{t('ownLocal')}</p>}
        <div class="command">
          <code dir="ltr">{link}</code>
          <button type="button" class="small" aria-label={t('ownCopyLink')} onClick={async () => inform(t((await copy(link)) ? 'copied' : 'notCopied'))}>{t('copy')}</button>
        </div>
        {fingerprint && <p class="quiet">{t('ownPin')} <code dir="ltr">{fingerprint}</code></p>}
      </div>
    </div>
  )
}
