import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { errorText } from '../view/errorText'
import { Icon } from '../view/icon'
import { showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import { loadDiagnostics, type Diagnostics } from './api'
import './messages'

/**
 * DiagnosticsPanel shows the route to the gateway, why it was chosen, and the last errors. The text
 * contains no secret, so it can be copied.
 */
export function DiagnosticsPanel({ dialog, open }: { dialog: RefObject<HTMLDialogElement | null>; open: boolean }) {
  const [found, setFound] = useState<Diagnostics>()
  const [busy, setBusy] = useState(false)
  const load = async (connect: boolean) => {
    setBusy(true)
    try {
      setFound(await loadDiagnostics(connect))
    } catch (error) {
      showToast(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => void (open && load(false)), [open])
  const close = () => dialog.current?.close()
  const copy = () =>
    navigator.clipboard.writeText(found?.text ?? '').then(
      () => showToast(t('copied')),
      () => showToast(t('notCopied')),
    )
  const route = found?.gateway?.route
  return (
    <div class="panel-inner">
      <header><h2 id="diagnosis-title">{t('connectionDiagnostics')}</h2><button type="button" class="round" aria-label={t('close')} onClick={close}><Icon name="close" /></button></header>
      <p role="status">{busy ? t('connecting') : route ? t(route.kind === 'local' ? 'connectedLocal' : 'connectedRemote') : t('notConnected')}</p>
      <pre dir="ltr" role="region" tabIndex={0} aria-label={t('connectionDiagnostics')}>{found?.text}</pre>
      <button type="button" class="wide" disabled={busy} onClick={() => void load(true)}>{t('connectReconnect')}</button>
      <button type="button" class="wide" disabled={!found} onClick={() => void copy()}>{t('copy')}</button>
    </div>
  )
}
