import { signal } from '@preact/signals'
import { copy } from '../view/copy'
import { minutes, useNow } from '../view/clock'
import { nameOf } from '../view/name'
import { inform } from '../view/notice'
import { count, t } from '../words/words'
import type { Invited, Pending, User } from './api'
import { ask } from '../view/dialog'
import { act, overview } from './state'
import { moment } from './format'

/** The code that was made last, until it is put away or too old. */
const invited = signal<Invited | undefined>(undefined)

/** People is who may talk to the agent, who asks to, and the code for the next phone. */
export function People() {
  const { pending, approved } = overview.value!.pairing
  return (
    <>
      <Invite />
      <h3>{t('ownAsking')}</h3>
      {pending.length === 0 && <p class="quiet">{t('ownNobodyAsks')}</p>}
      <ul class="own-rows">{pending.map((one, i) => <Asks key={one.request_id || i} pending={one} />)}</ul>
      <h3>{t('ownApproved')}</h3>
      {approved.length === 0 && <p class="quiet">{t('ownNobodyApproved')}</p>}
      <ul class="own-rows">{approved.map((user) => <May key={user.user_id} user={user} />)}</ul>
    </>
  )
}

function Invite() {
  const open = invited.value
  const make = async () => {
    const made = await act<Invited>('/pair')
    if (made) invited.value = made.answer
  }
  return (
    <section class="own-row" aria-label={t('ownInvite')}>
      <p>{t('ownInviteHint')}</p>
      {open && <Code invited={open} />}
      <div class="own-actions"><button type="button" class={open ? 'small' : 'primary'} onClick={() => void make()}>{t(open ? 'ownInviteNext' : 'ownInvite')}</button></div>
    </section>
  )
}

function Code({ invited: { code, link, qr, expires_at, fingerprint, local } }: { invited: Invited }) {
  const left = (new Date(expires_at).getTime() - useNow(true)) / 1000
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

/** who is what a person is called: by a name, or by the names of the devices. The id below it is what counts. */
function who(id: string, name: string): string {
  if (name && name !== id) return nameOf(name)
  return overview.value!.devices.filter((device) => device.user === id && device.name !== id).map((device) => nameOf(device.name)).filter(Boolean).join(', ') || id
}

function Asks({ pending: { request_id, user_id, user_name, age_minutes } }: { pending: Pending }) {
  const name = who(user_id, user_name)
  return (
    <li class="own-row">
      <div class="own-row-head"><strong><bdi>{name}</bdi></strong><span class="own-badge wait">{count('ownAge', age_minutes)}</span></div>
      <p class="quiet"><code dir="ltr">{user_id}</code></p>
      {request_id ? (
        <div class="own-actions"><button type="button" class="small primary" aria-label={t('ownApproveWho', { name })} onClick={() => void act('/pairing/approve', { id: request_id })}>{t('ownApprove')}</button></div>
      ) : (
        <p class="quiet">{t('ownOldRequest')}</p>
      )}
    </li>
  )
}

function May({ user: { user_id, user_name, approved_at } }: { user: User }) {
  const name = who(user_id, user_name ?? '')
  const revoke = () =>
    ask({
      title: t('ownRevokeUser'), text: t('ownRevokeUserSure', { name }), label: t('ownRevoke'), danger: true,
      run: async () => {
        const done = await act<{ anyway?: string }>('/pairing/revoke', { id: user_id })
        if (done?.answer.anyway) inform(done.answer.anyway)
        return done
      },
    })
  return (
    <li class="own-row">
      <div class="own-row-head"><strong><bdi>{name}</bdi></strong></div>
      <p class="quiet"><code dir="ltr">{user_id}</code>{approved_at ? ' · ' + t('ownApprovedAt', { when: moment(approved_at) }) : ''}</p>
      <div class="own-actions"><button type="button" class="small own-danger" aria-label={t('ownRevokeWho', { name })} onClick={revoke}>{t('ownRevoke')}</button></div>
    </li>
  )
}
