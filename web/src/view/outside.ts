import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** useAway calls close when the person turns to something outside of an element that is open. */
export function useAway(open: boolean, element: RefObject<HTMLElement | null>, close: () => void): void {
  useEffect(() => {
    if (!open) return
    const turn = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) close()
    }
    document.addEventListener('pointerdown', turn)
    document.addEventListener('focusin', turn)
    return () => {
      document.removeEventListener('pointerdown', turn)
      document.removeEventListener('focusin', turn)
    }
  }, [open])
}
