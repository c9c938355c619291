import type { FunctionComponent, RefObject } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { complain } from '../view/notice'
import { t } from '../words/words'
import { act } from './api'

type View = FunctionComponent<{ dialog: RefObject<HTMLDialogElement | null>; open: boolean }>

/** GatewayEntries are what the settings of the direct client have beside the others: its setup, and its diagnostics. */
export function GatewayEntries({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [view, setView] = useState<{ Diagnosis: View }>()
  const [open, setOpen] = useState(false)
  const show = async () => {
    const { Diagnosis } = await import('./diagnostics')
    setView({ Diagnosis })
    setOpen(true)
    dialog.current?.showModal()
  }
  return (
    <>
      <button type="button" class="wide" onClick={() => { close(); act({ do: 'edit' }).catch(complain) }}>{t('setEdit')}</button>
      <button type="button" class="wide" onClick={() => void show()}>{t('setDiagnosis')}</button>
      <dialog class="panel" ref={dialog} aria-labelledby="diagnosis-title" onClose={() => setOpen(false)}>
        {view && <view.Diagnosis dialog={dialog} open={open} />}
      </dialog>
    </>
  )
}
