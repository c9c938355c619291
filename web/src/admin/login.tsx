import { useState } from 'preact/hooks'
import { t, type Key } from '../words/words'
import { Choices } from './choices'
import { access, login, passkeyLogin, spent } from './state'
import { supported } from './webauthn'

const reasons: Record<string, Key> = {
  wrong_token: 'ownWrongToken', rate_limited: 'ownTooMany', busy: 'ownBusy', shared_token: 'ownSharedToken', encrypt: 'ownEncrypt', unreachable: 'unreachable', foreign: 'ownForeign',
  wrong_passkey: 'keyWrong', copied_passkey: 'keyCopied', no_passkey: 'keyNoneYet', passkey: 'keyNeeded', stopped: 'keyStopped', store: 'keyStore',
}

/** Login says how to get in: by a link from the server's machine, and where the server takes it, by the admin token. */
export function Login() {
  const way = access.value?.access
  return (
    <main class="screen">
      <div class="card-panel">
        <h1>{t('ownTitle')}</h1>
        {spent.value && <p class="problem" role="alert">{t('ownLinkSpent')}</p>}
        {way === 'encrypt' && <p role="alert">{t('ownEncrypt')}</p>}
        {way === 'login' && access.value?.plain && <p class="problem">{t('ownPlain')}</p>}
        {way === 'login' && access.value?.passkey && <PasskeyButton />}
        {way === 'login' && access.value?.token && <TokenForm />}
        <p>{t(way === 'login' ? 'ownRunInstead' : 'ownRun')}</p>
        <div class="command"><code>hermes-mobile admin</code></div>
        <Choices />
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
    <div class="own-form">
      <button type="button" class="primary wide" disabled={busy || !supported()} onClick={enter}>{t('keyLogin')}</button>
      {!supported() && <p class="problem">{t('keyUnsupported')}</p>}
      <p class="problem" role="alert">{wrong}</p>
    </div>
  )
}

/** TokenForm asks for the admin token. It is sent once and not kept. */
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
    <form class="own-form" onSubmit={submit}>
      <label>{t('ownToken')}<small>{t('ownTokenHint')}</small>
        <input type="password" value={token} onInput={(e) => setToken(e.currentTarget.value)} autocomplete="current-password" maxLength={512} required aria-invalid={wrong ? true : undefined} />
      </label>
      <p class="problem" role="alert">{wrong}</p>
      <button type="submit" class={access.value?.passkey ? 'wide' : 'primary wide'} disabled={busy}>{t('ownLogin')}</button>
    </form>
  )
}
