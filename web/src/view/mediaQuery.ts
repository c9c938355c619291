import { useEffect, useState } from 'preact/hooks'

/** useMediaQuery reports whether a media query matches, and redraws when that changes. */
export function useMediaQuery(query: string): boolean {
  const [holds, setHolds] = useState(() => matchMedia(query).matches)
  useEffect(() => {
    const list = matchMedia(query)
    const change = () => setHolds(list.matches)
    change()
    list.addEventListener('change', change)
    return () => list.removeEventListener('change', change)
  }, [query])
  return holds
}

/** prefersReducedMotion reports whether the user prefers reduced motion. */
export function prefersReducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}
