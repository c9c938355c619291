import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { openDialog as confirm } from '../view/dialog'
import { showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import { requestJSON, RequestError } from './api'
import { relativeTime, dateTime } from './format'
import { submit } from './state'
import { createPasskey, wasAborted, passkeysSupported, type CreateOptions } from './webauthn'

interface Passkey {
  id: string
  name: string
  site: string
  created_at: string
  used_at?: string
}

interface List {
  passkeys: Passkey[]
  /** This page can register a passkey. */
  here: boolean
  mode: 'optional' | 'required' | 'both'
}

const list = signal<List | undefined>(undefined)
const modes = { optional: 'passkeyOptional', required: 'passkeyRequired', both: 'passkeyBoth' } as const

/**
 * load fetches the passkeys. It ignores errors, because the page already shows that it may be out
 * of date.
 */
async function load(): Promise<void> {
  list.value = await requestJSON<List>('/passkeys').catch(() => list.peek())
}

async function change(path: string, body: object): Promise<boolean> {
  const done = await submit(path, body)
  await load()
  return !!done
}

/** add registers a passkey. It throws an error for the dialog to show. */
async function add(name: string): Promise<boolean> {
  try {
    const credential = await createPasskey(await requestJSON<CreateOptions>('/passkeys/begin', {}))
    await requestJSON('/passkeys/add', { name, credential })
  } catch (error) {
    throw wasAborted(error) ? new RequestError(0, '', t((error as DOMException).name === 'InvalidStateError' ? 'passkeyExists' : 'passkeyAborted')) : error
  } finally {
    await load()
  }
  showToast(t('passkeyAdded'))
  return true
}

/** Passkeys lists the passkeys that open this page and registers new ones. */
export function Passkeys() {
  useEffect(() => void load(), [])
  const now = list.value
  const make = () => confirm({ title: t('passkeyNew'), text: t('passkeyNewHint'), label: t('passkeyContinue'), field: { label: t('adminName'), value: '', longest: 64 }, run: add })
  return (
    <section aria-labelledby="passkeys" class="admin-section">
      <h3 id="passkeys">{t('passkeys')}</h3>
      <p class="muted">{t('passkeyHint')}{now && <> {t(modes[now.mode])}</>}</p>
      {now && (now.here && passkeysSupported() ? (
        <div class="admin-actions"><button type="button" class="small" onClick={make}>{t('passkeyNew')}</button></div>
      ) : (
        <p class="muted">{t('passkeyNotHere')}</p>
      ))}
      {now?.passkeys.length === 0 && <p class="muted">{t('passkeyNone')}</p>}
      <ul class="admin-rows" aria-busy={!now}>{now?.passkeys.map((one) => <Row key={one.id} passkey={one} last={now.passkeys.length === 1 && now.mode !== 'optional'} />)}</ul>
    </section>
  )
}

function Row({ passkey: { id, name, site, created_at, used_at }, last }: { passkey: Passkey; last: boolean }) {
  const rename = () => confirm({ title: t('adminRename'), label: t('save'), field: { label: t('adminName'), value: name, longest: 64 }, run: (next) => change('/passkeys/rename', { id, name: next }) })
  const remove = () => confirm({ title: t('passkeyRemove'), text: t(last ? 'passkeyRemoveLast' : 'passkeyRemoveConfirm', { name }), label: t('adminRemove'), danger: true, back: '#passkeys', run: () => change('/passkeys/remove', { id }) })
  return (
    <li class="admin-row">
      <div class="admin-row-head"><strong><bdi>{name}</bdi></strong><span class="admin-badge" dir="ltr">{site}</span></div>
      <p class="muted">{t('passkeySince', { when: dateTime(created_at) })} · {used_at ? t('lastUsed', { when: relativeTime(used_at) }) : t('neverUsed')}</p>
      <div class="admin-actions">
        <button type="button" class="small" aria-label={t('passkeyRenameNamed', { name })} onClick={rename}>{t('adminRename')}</button>
        <button type="button" class="small admin-danger" aria-label={t('adminRemoveNamed', { label: name })} onClick={remove}>{t('adminRemove')}</button>
      </div>
    </li>
  )
}
