import { Icon } from '../view/icon'
import { count, t } from '../i18n/i18n'
import { rights, type Device, type Right } from './api'
import { Badge } from './badge'
import { openDialog } from '../view/dialog'
import { displayName, textWithNames } from '../view/displayName'
import { submit, overview } from './state'
import { relativeTime, deviceName, expiryText } from './format'

/** Devices lists the devices that are or were connected, with the owner's actions for each. */
export function Devices() {
  const { devices } = overview.value!
  return (
    <>
      <Home />
      {devices.length === 0 && <p class="muted">{t('adminNoDevices')}</p>}
      <ul class="admin-rows">{devices.map((device) => <Row key={device.id} device={device} />)}</ul>
    </>
  )
}

/** Home shows the home channel's device and lets the owner choose another one or none. */
function Home() {
  const { home, devices } = overview.value!
  const fit = devices.filter((device) => device.approved && !device.revoked && !device.conversation)
  const set = () =>
    openDialog({
      title: t('adminHome'), text: t('adminHomeHint'), label: t('adminSet'),
      field: { label: t('adminDevice'), value: home.device?.id ?? fit[0]!.id, options: fit.map((device) => ({ value: device.id, label: label(device) })) },
      run: (id) => submit('/home/set', { id }),
    })
  return (
    <div class="admin-row admin-home">
      <div class="admin-row-head"><strong>{t('adminHome')}</strong><bdi>{home.device ? deviceName(home.device.id) : t('adminNone')}</bdi></div>
      <div class="admin-actions">
        <button type="button" class="small" disabled={fit.length === 0} onClick={set}>{t('adminSet')}</button>
        {home.device && <button type="button" class="small" onClick={() => void submit('/home/clear')}>{t('adminClear')}</button>}
      </div>
    </div>
  )
}

const label = (device: Device) => (device.name && device.name !== device.id ? `${displayName(device.name)} (${device.id})` : device.id)

function Row({ device }: { device: Device }) {
  const { id } = device
  const name = displayName(device.name || id)
  const own = device.token === 'device:' + id
  const facts = [
    device.user && device.user !== id ? t('adminUser', { name: displayName(device.user_name || device.user) }) : '',
    device.was_user ? t('adminFormerUser', { name: displayName(device.was_user) }) : '',
    displayName([device.app, device.platform].filter(Boolean).join(', ')),
    own ? t('adminOwnToken') : device.token ? t('adminByToken', { label: device.token }) : t('adminUnbound'),
    own && expiryText(device.expires_at), device.rotating && t('adminRotating'),
  ].filter(Boolean)
  const rename = () => openDialog({ title: t('adminRename'), label: t('save'), field: { label: t('adminName'), value: device.name }, run: (next) => submit('/devices/rename', { id, name: next }) })
  const rotate = () =>
    openDialog({ title: t('adminRotate'), text: t('adminRotateConfirm', { name }), label: t('adminRotate'), run: () => submit('/devices/rotate', { id }) })
  const unbind = () => openDialog({ title: t('adminUnbind'), text: t('adminUnbindConfirm', { name }), label: t('adminUnbind'), run: () => submit('/devices/unbind', { id }) })
  const revoke = () => openDialog({ title: t('adminRevoke'), text: t('adminRevokeConfirm', { name }), label: t('adminRevoke'), danger: true, run: () => submit('/devices/revoke', { id }) })
  return (
    <li class="admin-row" data-device={id}>
      <div class="admin-row-head">
        <strong><bdi>{name}</bdi></strong>
        {device.revoked ? <span class="admin-badge bad">{t('adminRevoked')}</span> : !device.approved ? <span class="admin-badge wait">{t('adminNotApproved')}</span> : null}
        <Badge good={device.connected} text={device.connected ? t('deviceOnline') : t('adminSeen', { when: relativeTime(device.seen_at) })} />
        {device.answers_at && <span class="admin-badge wait" title={t('adminNewHint')}>{t('adminNew')}</span>}
        {device.home && <span class="admin-badge">{t('adminHome')}</span>}
      </div>
      <p class="muted"><code dir="ltr">{id}</code> · {facts.map((fact, i) => <>{i > 0 && ' · '}<bdi>{fact}</bdi></>)}</p>
      {device.conversation && <p class="muted">{textWithNames('adminJoined', { name: deviceName(device.conversation) })}</p>}
      {device.waiting > 0 && <p class="admin-waiting"><Icon name="clock" />{count('queued', device.waiting)}</p>}
      <Rights device={device} />
      <div class="admin-actions" role="group" aria-label={t('adminActionsOf', { name })}>
        <button type="button" class="small" onClick={rename}>{t('adminRename')}</button>
        <Share device={device} />
        {own && !device.revoked && !device.rotating && <button type="button" class="small" onClick={rotate}>{t('adminRotate')}</button>}
        <button type="button" class="small" onClick={unbind}>{t('adminUnbind')}</button>
        {!device.revoked && <button type="button" class="small admin-danger" onClick={revoke}>{t('adminRevoke')}</button>}
      </div>
    </li>
  )
}

const rightWords = { write: 'adminRightWrite', answer: 'adminRightAnswer', call: 'adminRightCall' } as const

/**
 * Rights has a switch for each right of a device. A switch shows the server's state, not the
 * requested one.
 */
function Rights({ device: { id, name, rights: has } }: { device: Device }) {
  const change = async (input: HTMLInputElement, right: Right) => {
    const on = input.checked
    input.checked = has[right]
    input.disabled = true
    await submit('/devices/rights', { id, rights: { [right]: on } })
    input.disabled = false
  }
  return (
    <div class="admin-rights" role="group" aria-label={t('adminRights', { name: displayName(name || id) })}>
      {rights.map((right) => (
        <label key={right}><input type="checkbox" role="switch" checked={has[right]} onChange={(e) => void change(e.currentTarget, right)} />{t(rightWords[right])}</label>
      ))}
    </div>
  )
}

/** Share lets a device join the conversation of another device of its user, or leave it. */
function Share({ device }: { device: Device }) {
  if (device.conversation) return <button type="button" class="small" onClick={() => void submit('/devices/leave', { id: device.id })}>{t('adminLeave')}</button>
  const others = overview.value!.devices.filter((other) => other.user === device.user && device.user && other.id !== device.id && !other.conversation && !other.revoked)
  if (device.revoked || others.length === 0) return null
  const join = () =>
    openDialog({
      title: t('adminJoin'), text: t('adminJoinHint'), label: t('adminJoin'),
      field: { label: t('adminJoinWhich'), value: others[0]!.id, options: others.map((other) => ({ value: other.id, label: label(other) })) },
      run: (conversation) => submit('/devices/join', { id: device.id, name: conversation }),
    })
  return <button type="button" class="small" onClick={join}>{t('adminJoin')}</button>
}
