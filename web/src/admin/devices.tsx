import { Icon } from '../view/icon'
import { count, t } from '../words/words'
import { rights, type Device, type Right } from './api'
import { State } from './badge'
import { ask } from '../view/dialog'
import { nameOf, sentence } from '../view/name'
import { act, overview } from './state'
import { ago, called, ends } from './format'

/** Devices lists what is or was connected, and what the owner can do with each. */
export function Devices() {
  const { devices } = overview.value!
  return (
    <>
      <Home />
      {devices.length === 0 && <p class="quiet">{t('ownNoDevices')}</p>}
      <ul class="own-rows">{devices.map((device) => <Row key={device.id} device={device} />)}</ul>
    </>
  )
}

/** Home says which device is the home channel, and lets it be another one or none. */
function Home() {
  const { home, devices } = overview.value!
  const fit = devices.filter((device) => device.approved && !device.revoked && !device.conversation)
  const set = () =>
    ask({
      title: t('ownHome'), text: t('ownHomeHint'), label: t('ownSet'),
      field: { label: t('ownDevice'), value: home.device?.id ?? fit[0]!.id, options: fit.map((device) => ({ value: device.id, label: label(device) })) },
      run: (id) => act('/home/set', { id }),
    })
  return (
    <div class="own-row own-home">
      <div class="own-row-head"><strong>{t('ownHome')}</strong><bdi>{home.device ? called(home.device.id) : t('ownNone')}</bdi></div>
      <div class="own-actions">
        <button type="button" class="small" disabled={fit.length === 0} onClick={set}>{t('ownSet')}</button>
        {home.device && <button type="button" class="small" onClick={() => void act('/home/clear')}>{t('ownClear')}</button>}
      </div>
    </div>
  )
}

const label = (device: Device) => (device.name && device.name !== device.id ? `${nameOf(device.name)} (${device.id})` : device.id)

function Row({ device }: { device: Device }) {
  const { id } = device
  const name = nameOf(device.name || id)
  const own = device.token === 'device:' + id
  const facts = [
    device.user && device.user !== id ? t('ownUser', { name: nameOf(device.user_name || device.user) }) : '',
    device.was_user ? t('ownWasUser', { name: nameOf(device.was_user) }) : '',
    nameOf([device.app, device.platform].filter(Boolean).join(', ')),
    own ? t('ownOwnToken') : device.token ? t('ownByToken', { label: device.token }) : t('ownUnbound'),
    own && ends(device.expires_at), device.rotating && t('ownRotating'),
  ].filter(Boolean)
  const rename = () => ask({ title: t('ownRename'), label: t('save'), field: { label: t('ownName'), value: device.name }, run: (next) => act('/devices/rename', { id, name: next }) })
  const rotate = () =>
    ask({ title: t('ownRotate'), text: t('ownRotateSure', { name }), label: t('ownRotate'), run: () => act('/devices/rotate', { id }) })
  const unbind = () => ask({ title: t('ownUnbind'), text: t('ownUnbindSure', { name }), label: t('ownUnbind'), run: () => act('/devices/unbind', { id }) })
  const revoke = () => ask({ title: t('ownRevoke'), text: t('ownRevokeSure', { name }), label: t('ownRevoke'), danger: true, run: () => act('/devices/revoke', { id }) })
  return (
    <li class="own-row" data-device={id}>
      <div class="own-row-head">
        <strong><bdi>{name}</bdi></strong>
        {device.revoked ? <span class="own-badge bad">{t('ownRevoked')}</span> : !device.approved ? <span class="own-badge wait">{t('ownNotApproved')}</span> : null}
        <State good={device.connected} text={device.connected ? t('deviceOnline') : t('ownSeen', { when: ago(device.seen_at) })} />
        {device.answers_at && <span class="own-badge wait" title={t('ownNewHint')}>{t('ownNew')}</span>}
        {device.home && <span class="own-badge">{t('ownHome')}</span>}
      </div>
      <p class="quiet"><code dir="ltr">{id}</code> · {facts.map((fact, i) => <>{i > 0 && ' · '}<bdi>{fact}</bdi></>)}</p>
      {device.conversation && <p class="quiet">{sentence('ownJoined', { name: called(device.conversation) })}</p>}
      {device.waiting > 0 && <p class="own-wait"><Icon name="clock" />{count('queued', device.waiting)}</p>}
      <Rights device={device} />
      <div class="own-actions" role="group" aria-label={t('ownActionsOf', { name })}>
        <button type="button" class="small" onClick={rename}>{t('ownRename')}</button>
        <Share device={device} />
        {own && !device.revoked && !device.rotating && <button type="button" class="small" onClick={rotate}>{t('ownRotate')}</button>}
        <button type="button" class="small" onClick={unbind}>{t('ownUnbind')}</button>
        {!device.revoked && <button type="button" class="small own-danger" onClick={revoke}>{t('ownRevoke')}</button>}
      </div>
    </li>
  )
}

const rightWords = { write: 'ownRightWrite', answer: 'ownRightAnswer', call: 'ownRightCall' } as const

/** Rights are switches for what a device may do. One shows what the server has said, not what was asked of it. */
function Rights({ device: { id, name, rights: has } }: { device: Device }) {
  const change = async (input: HTMLInputElement, right: Right) => {
    const on = input.checked
    input.checked = has[right]
    input.disabled = true
    await act('/devices/rights', { id, rights: { [right]: on } })
    input.disabled = false
  }
  return (
    <div class="own-rights" role="group" aria-label={t('ownRights', { name: nameOf(name || id) })}>
      {rights.map((right) => (
        <label key={right}><input type="checkbox" role="switch" checked={has[right]} onChange={(e) => void change(e.currentTarget, right)} />{t(rightWords[right])}</label>
      ))}
    </div>
  )
}

/** Share lets a device take part in the conversation of another one of its user, or go back to its own. */
function Share({ device }: { device: Device }) {
  if (device.conversation) return <button type="button" class="small" onClick={() => void act('/devices/leave', { id: device.id })}>{t('ownLeave')}</button>
  const others = overview.value!.devices.filter((other) => other.user === device.user && device.user && other.id !== device.id && !other.conversation && !other.revoked)
  if (device.revoked || others.length === 0) return null
  const join = () =>
    ask({
      title: t('ownJoin'), text: t('ownJoinHint'), label: t('ownJoin'),
      field: { label: t('ownJoinWhich'), value: others[0]!.id, options: others.map((other) => ({ value: other.id, label: label(other) })) },
      run: (conversation) => act('/devices/join', { id: device.id, name: conversation }),
    })
  return <button type="button" class="small" onClick={join}>{t('ownJoin')}</button>
}
