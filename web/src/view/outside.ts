import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** useOutside calls close when the user clicks or focuses anything outside of an open element. */
export function useOutside(open: boolean, element: RefObject<HTMLElement | null>, close: () => void): void {
  useEffect(() => {
    if (!open) return
    const onEvent = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) close()
    }
    document.addEventListener('pointerdown', onEvent)
    document.addEventListener('focusin', onEvent)
    return () => {
      document.removeEventListener('pointerdown', onEvent)
      document.removeEventListener('focusin', onEvent)
    }
  }, [open])
}
