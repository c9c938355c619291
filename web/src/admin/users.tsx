import { showToast } from '../view/toast'
import { count, t } from '../i18n/i18n'
import type { Pending, User } from './api'
import { openDialog } from '../view/dialog'
import { dateTime, userName } from './format'
import { PairingCodeForm } from './pairingCode'
import { submit, overview } from './state'

/** People is who may talk to the agent, who asks to, and the code for the next phone. */
export function Users() {
  const { pending, approved } = overview.value!.pairing
  return (
    <>
      <PairingCodeForm />
      <h3>{t('adminPending')}</h3>
      {pending.length === 0 && <p class="quiet">{t('adminNobodyPending')}</p>}
      <ul class="own-rows">{pending.map((one, i) => <PendingUser key={one.request_id || i} pending={one} />)}</ul>
      <h3>{t('adminApproved')}</h3>
      {approved.length === 0 && <p class="quiet">{t('adminNobodyApproved')}</p>}
      <ul class="own-rows">{approved.map((user) => <ApprovedUser key={user.user_id} user={user} />)}</ul>
    </>
  )
}

function PendingUser({ pending: { request_id, user_id, user_name, age_minutes } }: { pending: Pending }) {
  const name = userName(user_id, user_name)
  return (
    <li class="own-row">
      <div class="own-row-head"><strong><bdi>{name}</bdi></strong><span class="own-badge wait">{count('adminAge', age_minutes)}</span></div>
      <p class="quiet"><code dir="ltr">{user_id}</code></p>
      {request_id ? (
        <div class="own-actions"><button type="button" class="small primary" aria-label={t('adminApproveNamed', { name })} onClick={() => void submit('/pairing/approve', { id: request_id })}>{t('adminApprove')}</button></div>
      ) : (
        <p class="quiet">{t('adminOldRequest')}</p>
      )}
    </li>
  )
}

function ApprovedUser({ user: { user_id, user_name, approved_at } }: { user: User }) {
  const name = userName(user_id, user_name ?? '')
  const revoke = () =>
    openDialog({
      title: t('adminRevokeUser'), text: t('adminRevokeUserConfirm', { name }), label: t('adminRevoke'), danger: true,
      run: async () => {
        const done = await submit<{ anyway?: string }>('/pairing/revoke', { id: user_id })
        if (done?.answer.anyway) showToast(done.answer.anyway)
        return done
      },
    })
  return (
    <li class="own-row">
      <div class="own-row-head"><strong><bdi>{name}</bdi></strong></div>
      <p class="quiet"><code dir="ltr">{user_id}</code>{approved_at ? ' · ' + t('adminApprovedAt', { when: dateTime(approved_at) }) : ''}</p>
      <div class="own-actions"><button type="button" class="small own-danger" aria-label={t('adminRevokeNamed', { name })} onClick={revoke}>{t('adminRevoke')}</button></div>
    </li>
  )
}
