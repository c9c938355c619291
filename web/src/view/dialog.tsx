import { signal } from '@preact/signals'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { t } from '../i18n/i18n'
import { errorText } from './errorText'
import { Icon } from './icon'

/** DialogRequest is a question that the user answers before something happens. */
export interface DialogRequest {
  title: string
  text?: string
  /** The label of the button. */
  label: string
  danger?: boolean
  /** A text or choice to fill in. */
  field?: { label: string; value: string; longest?: number; options?: { value: string; label: string }[] }
  /** A selector for the focus if the focused element is gone afterwards. */
  back?: string
  /**
   * Resolves to false if it was rejected and the error is shown elsewhere. The dialog shows an
   * error that it throws.
   */
  run(value: string): Promise<unknown>
}

const request = signal<DialogRequest | undefined>(undefined)

export function openDialog(next: DialogRequest): void {
  request.value = next
}

/** Dialog shows the open question. It stays open until the server accepts the answer. */
export function Dialog() {
  const open = request.value
  const dialog = useRef<HTMLDialogElement>(null)
  const [value, setValue] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  useLayoutEffect(() => { // immediately: the next key is for the dialog
    if (!open) return
    setValue(open.field?.value ?? '')
    setBusy(false)
    setProblem('')
    dialog.current?.showModal()
  }, [open])
  const close = () => dialog.current?.close()
  const closed = () => {
    if (open?.back && document.activeElement === document.body) document.querySelector<HTMLElement>(open.back)?.focus()
    request.value = undefined
  }
  const submit = async (event: Event) => {
    event.preventDefault()
    if (!open || busy) return
    setBusy(true)
    setProblem('')
    try {
      if (await open.run(value)) close()
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <dialog class="panel" ref={dialog} aria-labelledby="question-title" onClose={closed} onClick={(e) => e.target === dialog.current && close()}>
      {open && (
        <form class="panel-inner" onSubmit={submit}>
          <header><h2 id="question-title">{open.title}</h2><button type="button" class="round" aria-label={t('close')} onClick={close}><Icon name="close" /></button></header>
          {open.text && <p dir="auto">{open.text}</p>}
          {open.field && (
            <label>{open.field.label}
              {open.field.options ? (
                <select value={value} onChange={(e) => setValue(e.currentTarget.value)}>
                  {open.field.options.map((one) => <option key={one.value} value={one.value}>{one.label}</option>)}
                </select>
              ) : (
                <input value={value} onInput={(e) => setValue(e.currentTarget.value)} maxLength={open.field.longest ?? 60} dir="auto" autocomplete="off" required />
              )}
            </label>
          )}
          {problem && <p class="problem" role="alert" dir="auto">{problem}</p>}
          <div class="choices">
            <button type="button" onClick={close}>{t('cancel')}</button>
            <button type="submit" class={open.danger ? 'danger' : 'primary'} disabled={busy}>{open.label}</button>
          </div>
        </form>
      )}
    </dialog>
  )
}
