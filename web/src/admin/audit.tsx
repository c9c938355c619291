import { signal } from '@preact/signals'
import { showError } from '../view/toast'
import { t, type Key } from '../i18n/i18n'
import { download, type AuditEntry } from './api'
import { audit, auditFilter, loadOlderAudit, overview } from './state'
import { deviceName, dateTimeSeconds } from './format'

const actions: Record<string, Key> = {
  'pair.code': 'auditPairCode', 'device.paired': 'auditDevicePaired', 'device.renamed': 'auditDeviceRenamed', 'device.rights': 'auditDeviceRights',
  'device.joined': 'auditDeviceJoined', 'device.left': 'auditDeviceLeft', 'device.unbound': 'auditDeviceUnbound', 'device.revoked': 'auditDeviceRevoked',
  'device.dropped': 'auditDeviceDropped', 'device.rotated': 'auditDeviceRotated', 'device.renewed': 'auditDeviceRenewed', 'user.approved': 'auditUserApproved', 'user.revoked': 'auditUserRevoked', 'token.added': 'auditTokenAdded',
  'token.removed': 'auditTokenRemoved', 'home.set': 'auditHomeSet', 'home.cleared': 'auditHomeCleared', 'delivery.sent': 'auditDeliverySent',
  'api_user.added': 'auditApiUserAdded', 'api_user.removed': 'auditApiUserRemoved', 'api_user.password': 'auditApiUserPassword',
  'admin.login': 'auditAdminLogin', 'admin.login_failed': 'auditAdminLoginFailed', 'admin.logout': 'auditAdminLogout', 'admin.link': 'auditAdminLink', 'admin.token': 'auditAdminToken', 'app.opened': 'auditAppOpened', 'device.added': 'auditDeviceAdded',
  'passkey.added': 'auditPasskeyAdded', 'passkey.renamed': 'auditPasskeyRenamed', 'passkey.removed': 'auditPasskeyRemoved', 'passkey.login': 'auditPasskeyLogin', 'passkey.suspect': 'auditPasskeySuspect',
  'settings.reloaded': 'auditSettingsReloaded', 'backup.written': 'auditBackupWritten', 'backup.restored': 'auditBackupRestored',
}
/** The filters: the part of an action's name before its dot. */
const kinds: Record<string, Key> = {
  pair: 'auditPairCode', device: 'adminDevices', user: 'adminUsers', token: 'adminTokens', home: 'adminHome', delivery: 'adminDeliveries', api_user: 'auditApiUsers', admin: 'auditAdmin',
  passkey: 'passkeys',   settings: 'settings', backup: 'auditBackups',
}
const actors: Record<string, Key> = { socket: 'auditBySocket', admin: 'auditAdmin', code: 'auditByCode', stranger: 'auditByStranger', server: 'server' }
/** Actions whose subject is a device. */
const onDevices = /^(device|home|delivery)\./
const failed = /_failed$|\.suspect$/

const exporting = signal(false)
const loading = signal(false)

const action = (name: string) => (actions[name] ? t(actions[name]) : name)

/** actor names who acted. */
function actor(name: string): string {
  if (name.startsWith('device:')) return t('auditByDevice', { name: deviceName(name.slice(7)) })
  if (name.startsWith('user:')) return t('adminUser', { name: name.slice(5) })
  return actors[name] ? t(actors[name]) : name
}

/** runOnce runs a task unless it is already running. */
async function runOnce(busy: typeof loading, run: () => Promise<void>): Promise<void> {
  if (busy.peek()) return
  busy.value = true
  await run().catch(showError)
  busy.value = false
}

/** Audit lists who changed what, newest first. */
export function Audit() {
  const list = audit.value
  const { kind, device } = auditFilter.value
  const save = () => runOnce(exporting, () => download('/audit/export', `hermes-mobile-audit-${new Date().toISOString().slice(0, 10)}.jsonl`))
  return (
    <>
      <p class="muted">{t('auditHint')}</p>
      <div class="admin-filter">
        <label>{t('auditKind')}
          <select value={kind} onChange={(e) => (auditFilter.value = { device, kind: e.currentTarget.value })}>
            <option value="">{t('adminAll')}</option>
            {Object.entries(kinds).map(([name, key]) => <option key={name} value={name}>{t(key)}</option>)}
          </select>
        </label>
        <label>{t('adminDevice')}
          <select value={device} onChange={(e) => (auditFilter.value = { kind, device: e.currentTarget.value })}>
            <option value="">{t('adminAll')}</option>
            {overview.value!.devices.map(({ id }) => <option key={id} value={id}>{deviceName(id)}</option>)}
          </select>
        </label>
      </div>
      <div class="admin-actions"><button type="button" class="small" disabled={exporting.value} onClick={save}>{t('auditExport')}</button></div>
      {list?.entries.length === 0 && <p class="muted" role="status">{t(kind || device ? 'auditNoMatch' : 'auditNone')}</p>}
      <ol class="admin-rows" aria-label={t('auditTitle')} aria-busy={!list}>{list?.entries.map((entry) => <Row key={entry.number} entry={entry} />)}</ol>
      {list?.more && <div class="admin-actions"><button type="button" class="small" disabled={loading.value} onClick={() => runOnce(loading, loadOlderAudit)}>{t('auditMore')}</button></div>}
    </>
  )
}

function Row({ entry: e }: { entry: AuditEntry }) {
  const name = onDevices.test(e.action) && e.subject ? deviceName(e.subject) : ''
  const bad = failed.test(e.action) || e.detail === 'failed'
  return (
    <li class="admin-row">
      <div class="admin-row-head">
        <strong>{action(e.action)}</strong>
        {name && name !== e.subject && <bdi>{name}</bdi>}
        {e.subject && <bdi><code>{e.subject}</code></bdi>}
        {bad && <span class="admin-badge bad">{t('auditFailed')}</span>}
      </div>
      {e.detail && e.detail !== 'failed' && <p class="muted"><bdi>{e.detail}</bdi></p>}
      <p class="muted"><bdi>{actor(e.actor)}</bdi>{e.origin && <> · <bdi>{e.origin}</bdi></>} · <time dateTime={e.at}>{dateTimeSeconds(e.at)}</time></p>
    </li>
  )
}
