import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** useAway calls close when the person turns to something outside of an element that is open. */
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
