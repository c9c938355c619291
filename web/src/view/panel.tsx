import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { t } from '../i18n/i18n'
import { ErrorBoundary } from './errorBoundary'
import { Icon } from './icon'

interface Props {
  title: string
  open: boolean
  close: () => void
  /** A drawer stands at the edge, where the writing begins. */
  drawer?: boolean
  children: ComponentChildren
}

/** Panel is a dialog. What is in it is there while it is open. */
export function Panel({ title, open, close, drawer, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const opener = useRef<Element | null>(null)
  const id = useId()
  useLayoutEffect(() => { // at once: the next key is for what is in it
    if (open) {
      opener.current = document.activeElement
      dialog.current!.showModal()
      return
    }
    dialog.current!.close()
    // What had the focus may have been switched off meanwhile, and then a browser does not always give it back.
    if (document.activeElement === document.body) (opener.current as HTMLElement | null)?.focus()
  }, [open])
  return (
    <dialog class={drawer ? 'panel drawer' : 'panel'} ref={dialog} aria-labelledby={id} onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      {open && (
        <div class="panel-inner">
          <header><h2 id={id}>{title}</h2><button type="button" class="round" aria-label={t('close')} onClick={close}><Icon name="close" /></button></header>
          <ErrorBoundary resetKey={title} fallback={() => <Problem text={t('pageErrorTitle')} />}>{children}</ErrorBoundary>
        </div>
      )}
    </dialog>
  )
}

/** Problem says what went wrong, as the server or the gateway put it. A screen reader reads it when it comes. */
export function Problem({ text }: { text: string }) {
  return <div role="alert">{text && <p class="problem" dir="auto">{text}</p>}</div>
}
