import { useState } from 'preact/hooks'
import { deviceName } from '../storage/profile'
import { socketAddress, otherServerPage, parseAddress, parseInvitation, type Invitation } from '../conversation/address'
import { pairDevice, currentClient } from '../conversation/currentClient'
import { t } from '../i18n/i18n'
import { Avatar } from './avatar'
import { errorText } from './errorText'
import { pairingAgain } from './state'

/** Welcome pairs a device with an opened link, a code, or a token. */
export function Welcome({ invitation }: { invitation?: Invitation }) {
  const [method, setMethod] = useState<'code' | 'token'>('code')
  const [link, setLink] = useState('')
  const [address, setAddress] = useState(socketAddress())
  const [token, setToken] = useState('')
  const [name, setName] = useState(deviceName())
  const [user, setUser] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const [other, setOther] = useState('')
  const [used, setUsed] = useState(false)
  const linked = used ? undefined : invitation

  /** parseForm reads the form. A string says what is wrong with it. */
  const parseForm = (): Invitation | string => {
    if (linked) return linked
    if (method === 'code') return parseInvitation(link) ?? t('invalidPairingCode')
    const url = parseAddress(address)
    if (!url) return t('invalidAddress')
    return token.trim() ? { url, token: token.trim() } : t('tokenRequired')
  }

  const submit = async (event: Event) => {
    event.preventDefault()
    const found = parseForm()
    setOther('')
    if (typeof found === 'string') return setProblem(found)
    const page = otherServerPage(found.url)
    if (page) {
      setProblem(t('otherServer'))
      return setOther(found.pair ? `${page}#pair=${encodeURIComponent(found.pair)}&path=${encodeURIComponent(new URL(found.url).pathname)}` : page)
    }
    setBusy(true)
    setProblem('')
    try {
      await pairDevice(found, name.trim() || deviceName(), user.trim())
      pairingAgain.value = false
    } catch (error) {
      setProblem(found.pair && (error as { code?: string }).code === 'auth_failed' ? t('codeRejected') : errorText(error))
      if (linked) setUsed(true)
    } finally {
      setBusy(false)
    }
  }

  return (
    <main class="screen welcome">
      <form class="card-panel" onSubmit={submit} noValidate>
        <Avatar state="idle" />
        <h1>{t('welcome')}</h1>
        <p>{linked ? t('welcomeLinked') : t('welcomeText')}</p>
        {!linked && (
          <div class="tabs" role="group" aria-label={t('howToEnter')}>
            <button type="button" aria-pressed={method === 'code'} onClick={() => setMethod('code')}>{t('byCode')}</button>
            <button type="button" aria-pressed={method === 'token'} onClick={() => setMethod('token')}>{t('byToken')}</button>
          </div>
        )}
        {!linked && method === 'code' && (
          <label>
            {t('linkOrCode')}
            <input value={link} onInput={(e) => setLink(e.currentTarget.value)} autocomplete="off" autocapitalize="characters" spellcheck={false} dir="ltr" placeholder="7KQ4-M2XD" />
            <small>{t('linkHint')} <code dir="ltr">hermes-mobile pair</code></small>
          </label>
        )}
        {!linked && method === 'token' && (
          <>
            <label>{t('address')}<input value={address} onInput={(e) => setAddress(e.currentTarget.value)} autocomplete="off" spellcheck={false} dir="ltr" inputMode="url" /></label>
            <label>{t('token')}<input type="password" value={token} onInput={(e) => setToken(e.currentTarget.value)} autocomplete="off" spellcheck={false} dir="ltr" /></label>
          </>
        )}
        <label>{t('deviceName')}<input value={name} onInput={(e) => setName(e.currentTarget.value)} maxLength={60} dir="auto" autocomplete="off" /></label>
        <details>
          <summary>{t('more')}</summary>
          <label>{t('user')}<input value={user} onInput={(e) => setUser(e.currentTarget.value)} maxLength={128} pattern="[A-Za-z0-9._:@\-]*" dir="ltr" autocomplete="off" spellcheck={false} /><small>{t('userHint')}</small></label>
        </details>
        {problem && <p class="problem" role="alert" dir="auto">{problem} {other && <a href={other}>{other.replace(/#.*/, '')}</a>}</p>}
        <button type="submit" class="primary wide" disabled={busy}>{busy ? t('connecting') : t('connect')}</button>
        {currentClient.value && <button type="button" class="link" onClick={() => (pairingAgain.value = false)}>{t('back')}</button>}
      </form>
    </main>
  )
}
