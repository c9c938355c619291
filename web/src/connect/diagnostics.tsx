import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { explain } from '../view/explain'
import { Icon } from '../view/icon'
import { inform } from '../view/notice'
import { t } from '../words/words'
import { diagnostics, type Diagnostics } from './api'

/** Diagnosis shows the way to the gateway, why it was chosen and what failed last. There is no secret in it, so it can be copied. */
export function Diagnosis({ dialog, open }: { dialog: RefObject<HTMLDialogElement | null>; open: boolean }) {
  const [found, setFound] = useState<Diagnostics>()
  const [busy, setBusy] = useState(false)
  const load = async (connect: boolean) => {
    setBusy(true)
    try {
      setFound(await diagnostics(connect))
    } catch (error) {
      inform(explain(error))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => void (open && load(false)), [open])
  const close = () => dialog.current?.close()
  const copy = () =>
    navigator.clipboard.writeText(found?.text ?? '').then(
      () => inform(t('copied')),
      () => inform(t('notCopied')),
    )
  const route = found?.gateway?.route
  return (
    <div class="panel-inner">
      <header><h2 id="diagnosis-title">{t('setDiagnosis')}</h2><button type="button" class="round" aria-label={t('close')} onClick={close}><Icon name="close" /></button></header>
      <p role="status">{busy ? t('connecting') : route ? t(route.kind === 'local' ? 'setOnLocal' : 'setOnRemote') : t('setOnNone')}</p>
      <pre dir="ltr" tabIndex={0} aria-label={t('setDiagnosis')}>{found?.text}</pre>
      <button type="button" class="wide" disabled={busy} onClick={() => void load(true)}>{t('setReconnect')}</button>
      <button type="button" class="wide" disabled={!found} onClick={() => void copy()}>{t('copy')}</button>
    </div>
  )
}
