import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { t } from '../i18n/i18n'
import { ErrorBoundary } from './errorBoundary'
import { Icon } from './icon'

interface Props {
  title: string
  open: boolean
  close: () => void
  /** A drawer is at the edge where lines start. */
  drawer?: boolean
  children: ComponentChildren
}

/** Panel is a dialog. Its content exists while it is open. */
export function Panel({ title, open, close, drawer, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const opener = useRef<Element | null>(null)
  const id = useId()
  useLayoutEffect(() => { // immediately: the next key is for the panel
    if (open) {
      opener.current = document.activeElement
      dialog.current!.showModal()
      return
    }
    dialog.current!.close()
    // The focused element may be disabled by now, and then not every browser restores the focus.
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

/**
 * Problem shows an error in the server's or the gateway's own words. A screen reader announces it.
 */
export function Problem({ text }: { text: string }) {
  return <div role="alert">{text && <p class="problem" dir="auto">{text}</p>}</div>
}
