import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ask as confirm } from '../view/dialog'
import { inform } from '../view/notice'
import { t } from '../words/words'
import { ask, Refusal } from './api'
import { ago, moment } from './format'
import { act } from './state'
import { create, stopped, supported, type CreateOptions } from './webauthn'

interface Passkey {
  id: string
  name: string
  site: string
  created_at: string
  used_at?: string
}

interface List {
  passkeys: Passkey[]
  /** This page can make one. */
  here: boolean
  mode: 'optional' | 'required' | 'both'
}

const list = signal<List | undefined>(undefined)
const modes = { optional: 'keyOptional', required: 'keyRequired', both: 'keyBoth' } as const

/** load asks for the passkeys anew. What is wrong with that is told where the page tells that it may be old. */
async function load(): Promise<void> {
  list.value = await ask<List>('/passkeys').catch(() => list.peek())
}

async function change(path: string, body: object): Promise<boolean> {
  const done = await act(path, body)
  await load()
  return !!done
}

/** add makes a passkey. It throws what a dialog shows. */
async function add(name: string): Promise<boolean> {
  try {
    const credential = await create(await ask<CreateOptions>('/passkeys/begin', {}))
    await ask('/passkeys/add', { name, credential })
  } catch (error) {
    throw stopped(error) ? new Refusal(0, '', t((error as DOMException).name === 'InvalidStateError' ? 'keyThere' : 'keyStopped')) : error
  } finally {
    await load()
  }
  inform(t('keyAdded'))
  return true
}

/** Passkeys lists the passkeys that open this page, and makes new ones. */
export function Passkeys() {
  useEffect(() => void load(), [])
  const now = list.value
  const make = () => confirm({ title: t('keyNew'), text: t('keyNewHint'), label: t('keyMake'), field: { label: t('ownName'), value: '', longest: 64 }, run: add })
  return (
    <section aria-labelledby="passkeys" class="own-section">
      <h3 id="passkeys">{t('keyTitle')}</h3>
      <p class="quiet">{t('keyHint')}{now && <> {t(modes[now.mode])}</>}</p>
      {now && (now.here && supported() ? (
        <div class="own-actions"><button type="button" class="small" onClick={make}>{t('keyNew')}</button></div>
      ) : (
        <p class="quiet">{t('keyNotHere')}</p>
      ))}
      {now?.passkeys.length === 0 && <p class="quiet">{t('keyNone')}</p>}
      <ul class="own-rows" aria-busy={!now}>{now?.passkeys.map((one) => <Row key={one.id} passkey={one} last={now.passkeys.length === 1 && now.mode !== 'optional'} />)}</ul>
    </section>
  )
}

function Row({ passkey: { id, name, site, created_at, used_at }, last }: { passkey: Passkey; last: boolean }) {
  const rename = () => confirm({ title: t('ownRename'), label: t('save'), field: { label: t('ownName'), value: name, longest: 64 }, run: (next) => change('/passkeys/rename', { id, name: next }) })
  const remove = () => confirm({ title: t('keyRemove'), text: t(last ? 'keyRemoveLast' : 'keyRemoveSure', { name }), label: t('ownRemoveToken'), danger: true, back: '#passkeys', run: () => change('/passkeys/remove', { id }) })
  return (
    <li class="own-row">
      <div class="own-row-head"><strong><bdi>{name}</bdi></strong><span class="own-badge" dir="ltr">{site}</span></div>
      <p class="quiet">{t('keySince', { when: moment(created_at) })} · {used_at ? t('keyUsed', { when: ago(used_at) }) : t('keyUnused')}</p>
      <div class="own-actions">
        <button type="button" class="small" aria-label={t('keyRenameWhich', { name })} onClick={rename}>{t('ownRename')}</button>
        <button type="button" class="small own-danger" aria-label={t('ownRemoveWhich', { label: name })} onClick={remove}>{t('ownRemoveToken')}</button>
      </div>
    </li>
  )
}
