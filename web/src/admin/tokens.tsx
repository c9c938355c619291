import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { copyText } from '../view/clipboard'
import { showToast } from '../view/toast'
import { t, type Key } from '../i18n/i18n'
import type { Token } from './api'
import { openDialog } from '../view/dialog'
import { Passkeys } from './passkeys'
import { relativeTime, expiryText } from './format'
import { lifetimes } from './pairingCode'
import { submit, overview } from './state'

interface CreatedToken {
  label: string
  token: string
}

/** The token that was just created. The server sends it only once. */
const newToken = signal<CreatedToken | undefined>(undefined)

const kinds: Record<string, Key> = { app: 'adminKindApp', deliver: 'adminKindDeliver' }
/**
 * The source of tokens that a command or this page created. Other tokens come from the settings.
 */
const OWN_SOURCE = 'tokens'

export function Tokens() {
  const { tokens } = overview.value!
  const [label, setLabel] = useState('')
  const [seconds, setSeconds] = useState(0)
  const add = async (event: Event) => {
    event.preventDefault()
    const done = await submit<CreatedToken>('/tokens/add', { label, seconds })
    if (!done) return
    newToken.value = done.answer
    setLabel('')
  }
  return (
    <>
      <form class="admin-row admin-form" onSubmit={add}>
        <label>{t('adminNewToken')}<small>{t('adminNewTokenHint')}</small>
          <span class="field-with-button"><input value={label} onInput={(e) => setLabel(e.currentTarget.value)} pattern="[A-Za-z0-9._\-]+" maxLength={64} required autocomplete="off" autocapitalize="none" spellcheck={false} dir="ltr" />
            <button type="submit" class="primary">{t('adminAdd')}</button></span>
        </label>
        <label>{t('adminAppTokenLifetime')}
          <select value={String(seconds)} onChange={(e) => setSeconds(Number(e.currentTarget.value))}>
            {lifetimes.map(([life, words]) => <option key={life} value={String(life)}>{t(words)}</option>)}
          </select>
        </label>
      </form>
      {newToken.value && <NewToken made={newToken.value} />}
      <ul class="admin-rows">{tokens.map((token) => <Row key={token.source + token.label} token={token} />)}</ul>
      <Passkeys />
    </>
  )
}

function NewToken({ made: { label, token } }: { made: CreatedToken }) {
  return (
    <div class="admin-row" role="status">
      <p>{t('adminTokenOnce', { label })}</p>
      <div class="command">
        <code dir="ltr" data-secret>{token}</code>
        <button type="button" class="small" aria-label={t('adminCopyToken')} onClick={async () => showToast(t((await copyText(token)) ? 'copied' : 'notCopied'))}>{t('copy')}</button>
      </div>
      <div class="admin-actions"><button type="button" class="small" onClick={() => (newToken.value = undefined)}>{t('adminHide')}</button></div>
    </div>
  )
}

function Row({ token: { label, kind, source, expires_at, last_used_at } }: { token: Token }) {
  const remove = () => openDialog({ title: t('adminRemove'), text: t('adminRemoveTokenConfirm', { label }), label: t('adminRemove'), danger: true, run: () => submit('/tokens/remove', { label }) })
  return (
    <li class="admin-row">
      <div class="admin-row-head"><strong dir="ltr">{label}</strong><span class="admin-badge">{kinds[kind] ? t(kinds[kind]) : kind}</span></div>
      <p class="muted">{[source === OWN_SOURCE ? t('adminTokenFile') : t('adminTokenSetting', { name: source }), expiryText(expires_at), last_used_at ? t('lastUsed', { when: relativeTime(last_used_at) }) : t('neverUsed')].filter(Boolean).join(' · ')}</p>
      {source === OWN_SOURCE && <div class="admin-actions"><button type="button" class="small admin-danger" aria-label={t('adminRemoveNamed', { label })} onClick={remove}>{t('adminRemove')}</button></div>}
    </li>
  )
}
