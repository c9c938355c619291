import type { FunctionComponent, RefObject } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { showError } from '../view/toast'
import { t } from '../i18n/i18n'
import { submit } from './api'

type View = FunctionComponent<{ dialog: RefObject<HTMLDialogElement | null>; open: boolean }>

/** GatewaySettings adds the setup and the diagnostics to the settings of the direct client. */
export function GatewaySettings({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [view, setView] = useState<{ DiagnosticsPanel: View }>()
  const [open, setOpen] = useState(false)
  const show = async () => {
    const { DiagnosticsPanel } = await import('./diagnostics')
    setView({ DiagnosticsPanel })
    setOpen(true)
    dialog.current?.showModal()
  }
  return (
    <>
      <button type="button" class="wide" onClick={() => { close(); submit({ do: 'edit' }).catch(showError) }}>{t('editGateway')}</button>
      <button type="button" class="wide" onClick={() => void show()}>{t('connectionDiagnostics')}</button>
      <dialog class="panel" ref={dialog} aria-labelledby="diagnosis-title" onClose={() => setOpen(false)}>
        {view && <view.DiagnosticsPanel dialog={dialog} open={open} />}
      </dialog>
    </>
  )
}
