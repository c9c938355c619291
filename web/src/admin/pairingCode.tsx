import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { copyText } from '../view/clipboard'
import { formatDuration, useNow } from '../view/clock'
import { showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import type { NewPairingCode } from './api'
import { userIDs, userName } from './format'
import { submit, overview } from './state'

/** The newest pairing code, until it expires or another one replaces it. */
const currentCode = signal<NewPairingCode | undefined>(undefined)

const DAY = 86_400
/** The lifetimes of a token, in seconds. */
export const lifetimes = [[0, 'adminNever'], [DAY, 'adminDay'], [30 * DAY, 'adminMonth'], [365 * DAY, 'adminYear']] as const

/** PairingCodeForm creates a pairing code for a device of an existing or a new user. */
export function PairingCodeForm() {
  const [user, setUser] = useState('')
  const [trusted, setTrusted] = useState(false)
  const [seconds, setSeconds] = useState(0)
  const open = currentCode.value
  const known = userIDs()
  const make = async (event: Event) => {
    event.preventDefault()
    const made = await submit<NewPairingCode>('/pair', { user, trusted, seconds })
    if (made) currentCode.value = made.answer
  }
  return (
    <section class="admin-row" aria-label={t('adminPair')}>
      <p>{t('adminPairHint')}</p>
      {open && <PairingCode invited={open} />}
      <form class="admin-filter" onSubmit={make}>
        <label>{t('adminPairUser')}
          <select value={user} onChange={(e) => setUser(e.currentTarget.value)}>
            <option value="">{t('adminNewUser')}</option>
            {known.map((id) => <option key={id} value={id}>{userName(id) === id ? id : `${userName(id)} (${id})`}</option>)}
          </select>
        </label>
        <label>{t('adminTokenLifetime')}
          <select value={String(seconds)} onChange={(e) => setSeconds(Number(e.currentTarget.value))}>
            {lifetimes.map(([life, words]) => <option key={life} value={String(life)}>{t(words)}</option>)}
          </select>
        </label>
        {user && (
          <label class="admin-check"><input type="checkbox" role="switch" checked={trusted} onChange={(e) => setTrusted(e.currentTarget.checked)} /><span>{t('adminTrusted')}<small>{t('adminTrustedHint')}</small></span></label>
        )}
        <div class="admin-actions"><button type="submit" class={open ? 'small' : 'primary'}>{t(open ? 'adminPairAnother' : 'adminPair')}</button></div>
      </form>
    </section>
  )
}

function PairingCode({ invited: { name, user, code, link, qr, expires_at, fingerprint, local } }: { invited: NewPairingCode }) {
  const left = (new Date(expires_at).getTime() - useNow(true)) / 1000
  const paired = overview.value!.paired.find((one) => one.code === name)
  if (paired) return <p class="admin-paired" role="status" dir="auto">{t('adminPaired', { name: paired.name || paired.id, user: userName(paired.user) })}</p>
  if (left <= 0) return <p role="status">{t('adminCodeExpired')}</p>
  return (
    <div class="admin-code">
      {/* Dark on light in every theme: not all cameras read inverted codes. */}
      <svg class="admin-qr" viewBox={`0 0 ${qr.size} ${qr.size}`} shape-rendering="crispEdges" role="img" aria-label={t('adminQR')}>
        <rect width={qr.size} height={qr.size} fill="#fff" />
        <path d={qr.path} fill="#000" />
      </svg>
      <div class="admin-code-text">
        <output class="code-big" dir="ltr" aria-label={t('pairingCode')}>{code}</output>
        <p dir="auto">{user ? t('adminCodeFor', { user: userName(user) }) : t('adminCodeForNew')}</p>
        <p class="muted">{t('timeLeft', { time: formatDuration(left) })}</p>
        {local && <p class="problem">{t('adminLocal')}</p>}
        <div class="command">
          <code dir="ltr">{link}</code>
          <button type="button" class="small" aria-label={t('adminCopyLink')} onClick={async () => showToast(t((await copyText(link)) ? 'copied' : 'notCopied'))}>{t('copy')}</button>
        </div>
        {fingerprint && <p class="muted">{t('adminPin')} <code dir="ltr">{fingerprint}</code></p>}
      </div>
    </div>
  )
}
