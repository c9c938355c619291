import { inform } from '../view/notice'
import { count, t } from '../words/words'
import type { Pending, User } from './api'
import { ask } from '../view/dialog'
import { moment, who } from './format'
import { Invite } from './invite'
import { act, overview } from './state'

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
