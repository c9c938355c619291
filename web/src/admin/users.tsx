import { showToast } from '../view/toast'
import { count, t } from '../i18n/i18n'
import type { Pending, User } from './api'
import { openDialog } from '../view/dialog'
import { dateTime, userName } from './format'
import { PairingCodeForm } from './pairingCode'
import { submit, overview } from './state'

/** Users lists the approved and the pending users, and creates pairing codes. */
export function Users() {
  const { pending, approved } = overview.value!.pairing
  return (
    <>
      <PairingCodeForm />
      <h3>{t('adminPending')}</h3>
      {pending.length === 0 && <p class="muted">{t('adminNobodyPending')}</p>}
      <ul class="admin-rows">{pending.map((one, i) => <PendingUser key={one.request_id || i} pending={one} />)}</ul>
      <h3>{t('adminApproved')}</h3>
      {approved.length === 0 && <p class="muted">{t('adminNobodyApproved')}</p>}
      <ul class="admin-rows">{approved.map((user) => <ApprovedUser key={user.user_id} user={user} />)}</ul>
    </>
  )
}

function PendingUser({ pending: { request_id, user_id, user_name, age_minutes } }: { pending: Pending }) {
  const name = userName(user_id, user_name)
  return (
    <li class="admin-row">
      <div class="admin-row-head"><strong><bdi>{name}</bdi></strong><span class="admin-badge wait">{count('adminAge', age_minutes)}</span></div>
      <p class="muted"><code dir="ltr">{user_id}</code></p>
      {request_id ? (
        <div class="admin-actions"><button type="button" class="small primary" aria-label={t('adminApproveNamed', { name })} onClick={() => void submit('/pairing/approve', { id: request_id })}>{t('adminApprove')}</button></div>
      ) : (
        <p class="muted">{t('adminOldRequest')}</p>
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
    <li class="admin-row">
      <div class="admin-row-head"><strong><bdi>{name}</bdi></strong></div>
      <p class="muted"><code dir="ltr">{user_id}</code>{approved_at ? ' · ' + t('adminApprovedAt', { when: dateTime(approved_at) }) : ''}</p>
      <div class="admin-actions"><button type="button" class="small admin-danger" aria-label={t('adminRevokeNamed', { name })} onClick={revoke}>{t('adminRevoke')}</button></div>
    </li>
  )
}
