import { useEffect, useState } from 'preact/hooks'

/** useMedia tells whether a media query holds, and draws anew when that changes. */
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

/** still is for people who want no movement. */
export function prefersReducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}
