import { useState } from 'preact/hooks'
import { t, type Key } from '../i18n/i18n'
import { DisplaySettings } from './displaySettings'
import { access, login, passkeyLogin, linkSpent } from './state'
import { passkeysSupported } from './webauthn'

const reasons: Record<string, Key> = {
  wrong_token: 'adminWrongToken', rate_limited: 'adminTooMany', busy: 'adminBusy', shared_token: 'adminSharedToken', encrypt: 'adminEncrypt', unreachable: 'unreachable', foreign: 'adminForeign',
  wrong_passkey: 'passkeyWrong', copied_passkey: 'passkeyCopied', no_passkey: 'passkeyNoneYet', passkey: 'passkeyNeeded', stopped: 'passkeyAborted', store: 'passkeyStore',
}

/**
 * Login shows the ways to log in: a link from the server's machine and, if the server accepts them,
 * the admin token and passkeys.
 */
export function Login() {
  const way = access.value?.access
  return (
    <main class="screen">
      <div class="card-panel">
        <h1>{t('adminTitle')}</h1>
        {linkSpent.value && <p class="problem" role="alert">{t('adminLinkSpent')}</p>}
        {way === 'encrypt' && <p role="alert">{t('adminEncrypt')}</p>}
        {way === 'login' && access.value?.plain && <p class="problem">{t('adminPlain')}</p>}
        {way === 'login' && access.value?.passkey && <PasskeyButton />}
        {way === 'login' && access.value?.token && <TokenForm />}
        <p>{t(way === 'login' ? 'adminRunInstead' : 'adminRun')}</p>
        <div class="command"><code>hermes-mobile admin</code></div>
        <DisplaySettings />
      </div>
    </main>
  )
}

/** PasskeyButton logs in with a passkey. */
function PasskeyButton() {
  const [busy, setBusy] = useState(false)
  const [wrong, setWrong] = useState('')
  const enter = async () => {
    setBusy(true)
    setWrong('')
    const code = await passkeyLogin()
    setBusy(false)
    setWrong(code && t(reasons[code] ?? 'unreachable'))
  }
  return (
    <div class="admin-form">
      <button type="button" class="primary wide" disabled={busy || !passkeysSupported()} onClick={enter}>{t('passkeyLogin')}</button>
      {!passkeysSupported() && <p class="problem">{t('passkeyUnsupported')}</p>}
      <p class="problem" role="alert">{wrong}</p>
    </div>
  )
}

/** TokenForm asks for the admin token. It sends the token once and doesn't store it. */
function TokenForm() {
  const [token, setToken] = useState('')
  const [busy, setBusy] = useState(false)
  const [wrong, setWrong] = useState('')
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    const code = await login(token.trim())
    setBusy(false)
    setWrong(code && t(reasons[code] ?? 'unreachable'))
    if (!code) setToken('')
  }
  return (
    <form class="admin-form" onSubmit={submit}>
      <label>{t('adminToken')}<small>{t('adminTokenHint')}</small>
        <input type="password" value={token} onInput={(e) => setToken(e.currentTarget.value)} autocomplete="current-password" maxLength={512} required aria-invalid={wrong ? true : undefined} />
      </label>
      <p class="problem" role="alert">{wrong}</p>
      <button type="submit" class={access.value?.passkey ? 'wide' : 'primary wide'} disabled={busy}>{t('adminLogin')}</button>
    </form>
  )
}
