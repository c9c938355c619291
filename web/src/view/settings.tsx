import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'
import { isDirectClient } from '../connect/api'
import { GatewaySettings } from '../connect/gatewaySettings'
import { renameDevice, signOut } from '../conversation/currentClient'
import type { Client } from '../conversation/client'
import { chooseLanguage, language, languages, t, type Language } from '../i18n/i18n'
import { Icon } from './icon'
import { showToast } from './toast'
import { NotificationSettings } from './notificationSettings'
import { chooseTheme, theme, themes, type Theme } from './theme'

const themeWords = { auto: 'themeAuto', light: 'themeLight', dark: 'themeDark' } as const

/** Settings are the user's choices on this device. */
export function Settings({ client, dialog }: { client: Client; dialog: RefObject<HTMLDialogElement | null> }) {
  const [name, setName] = useState(client.profile.name)
  const [sure, setSure] = useState<'' | 'clear' | 'out'>('')
  const { session, server } = client.status.value
  const close = () => dialog.current?.close()
  const clear = async () => {
    await client.conversation.clear()
    setSure('')
    close()
    showToast(t('cleared'))
  }
  return (
    <dialog class="panel" ref={dialog} aria-labelledby="settings-title" onClose={() => setSure('')} onClick={(e) => e.target === dialog.current && close()}>
      <div class="panel-inner">
        <header><h2 id="settings-title">{t('settings')}</h2><button type="button" class="round" aria-label={t('close')} onClick={close}><Icon name="close" /></button></header>
        <form onSubmit={(e) => { e.preventDefault(); void renameDevice(name) }}>
          <label>{t('deviceName')}<span class="field-with-button"><input value={name} onInput={(e) => setName(e.currentTarget.value)} maxLength={60} dir="auto" autocomplete="off" />
            {name.trim() && name !== client.profile.name ? <button type="submit">{t('save')}</button> : null}</span></label>
        </form>
        <label>{t('language')}
          <select value={language.value} onChange={(e) => chooseLanguage(e.currentTarget.value as Language)}>
            {Object.entries(languages).map(([tag, own]) => <option key={tag} value={tag} lang={tag}>{own}</option>)}
          </select>
        </label>
        <label>{t('theme')}
          <select value={theme.value} onChange={(e) => chooseTheme(e.currentTarget.value as Theme)}>
            {themes.map((one) => <option key={one} value={one}>{t(themeWords[one])}</option>)}
          </select>
        </label>
        <NotificationSettings notifications={client.notifications} />
        {!client.durable && <p class="problem">{t('historyNotSaved')}</p>}
        <dl class="facts">
          <dt>{t('conversation')}</dt><dd dir="ltr">{session || '–'}</dd>
          <dt>{t('server')}</dt><dd dir="ltr">{server || '–'}</dd>
        </dl>
        <ConfirmButton question={t('clearConfirm')} label={t('clearHistory')} open={sure === 'clear'} ask={() => setSure('clear')} cancel={() => setSure('')} run={clear} />
        {isDirectClient ? <GatewaySettings close={close} /> : <ConfirmButton question={t('signOutConfirm')} label={t('signOut')} open={sure === 'out'} ask={() => setSure('out')} cancel={() => setSure('')} run={() => { close(); void signOut() }} />}
      </div>
    </dialog>
  )
}

/** ConfirmButton asks again before it deletes something. */
function ConfirmButton({ question, label, open, ask, cancel, run }: { question: string; label: string; open: boolean; ask: () => void; cancel: () => void; run: () => void }) {
  if (!open) return <button type="button" class="wide" onClick={ask}>{label}</button>
  return (
    <div class="confirm" role="group" aria-label={label}>
      <p>{question}</p>
      <button type="button" class="danger" onClick={run}>{label}</button>
      <button type="button" onClick={cancel}>{t('cancel')}</button>
    </div>
  )
}
