import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { copy } from '../view/copy'
import { inform } from '../view/notice'
import { t, type Key } from '../words/words'
import type { Token } from './api'
import { ask } from '../view/dialog'
import { Passkeys } from './passkeys'
import { ago, ends } from './format'
import { lives } from './invite'
import { act, overview } from './state'

interface Made {
  label: string
  token: string
}

/** The token that was just made. The server shows it this once. */
const made = signal<Made | undefined>(undefined)

const kinds: Record<string, Key> = { app: 'ownKindApp', deliver: 'ownKindDeliver' }
/** Tokens of this place were made by a command or here; others are in the settings. */
const OURS = 'tokens'

export function Tokens() {
  const { tokens } = overview.value!
  const [label, setLabel] = useState('')
  const [seconds, setSeconds] = useState(0)
  const add = async (event: Event) => {
    event.preventDefault()
    const done = await act<Made>('/tokens/add', { label, seconds })
    if (!done) return
    made.value = done.answer
    setLabel('')
  }
  return (
    <>
      <form class="own-row own-form" onSubmit={add}>
        <label>{t('ownNewToken')}<small>{t('ownNewTokenHint')}</small>
          <span class="beside"><input value={label} onInput={(e) => setLabel(e.currentTarget.value)} pattern="[A-Za-z0-9._\-]+" maxLength={64} required autocomplete="off" autocapitalize="none" spellcheck={false} dir="ltr" />
            <button type="submit" class="primary">{t('ownAdd')}</button></span>
        </label>
        <label>{t('ownAppTokenLife')}
          <select value={String(seconds)} onChange={(e) => setSeconds(Number(e.currentTarget.value))}>
            {lives.map(([life, words]) => <option key={life} value={String(life)}>{t(words)}</option>)}
          </select>
        </label>
      </form>
      {made.value && <Once made={made.value} />}
      <ul class="own-rows">{tokens.map((token) => <Row key={token.source + token.label} token={token} />)}</ul>
      <Passkeys />
    </>
  )
}

function Once({ made: { label, token } }: { made: Made }) {
  return (
    <div class="own-row" role="status">
      <p>{t('ownOnce', { label })}</p>
      <div class="command">
        <code dir="ltr" data-secret>{token}</code>
        <button type="button" class="small" aria-label={t('ownCopyToken')} onClick={async () => inform(t((await copy(token)) ? 'copied' : 'notCopied'))}>{t('copy')}</button>
      </div>
      <div class="own-actions"><button type="button" class="small" onClick={() => (made.value = undefined)}>{t('ownHide')}</button></div>
    </div>
  )
}

function Row({ token: { label, kind, source, expires_at, last_used_at } }: { token: Token }) {
  const remove = () => ask({ title: t('ownRemoveToken'), text: t('ownRemoveTokenSure', { label }), label: t('ownRemoveToken'), danger: true, run: () => act('/tokens/remove', { label }) })
  return (
    <li class="own-row">
      <div class="own-row-head"><strong dir="ltr">{label}</strong><span class="own-badge">{kinds[kind] ? t(kinds[kind]) : kind}</span></div>
      <p class="quiet">{[source === OURS ? t('ownTokenFile') : t('ownTokenSetting', { name: source }), ends(expires_at), last_used_at ? t('keyUsed', { when: ago(last_used_at) }) : t('keyUnused')].filter(Boolean).join(' · ')}</p>
      {source === OURS && <div class="own-actions"><button type="button" class="small own-danger" aria-label={t('ownRemoveWhich', { label })} onClick={remove}>{t('ownRemoveToken')}</button></div>}
    </li>
  )
}
