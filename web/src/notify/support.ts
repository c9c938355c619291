/** Unsupported is why this browser can't show notifications. Empty: it can. */
export type Unsupported = '' | 'insecure' | 'install' | 'unsupported'

interface Environment {
  isSecureContext: boolean
  navigator: { userAgent: string; maxTouchPoints: number; standalone?: boolean }
  has(name: 'PushManager' | 'Notification' | 'serviceWorker'): boolean
}

const browserEnvironment = (): Environment => ({
  isSecureContext, navigator,
  has: (name) => (name === 'serviceWorker' ? name in navigator : name in window),
})

/**
 * unsupportedReason checks the browser. On iOS, only a page on the home screen can notify, and only
 * there do the APIs exist.
 */
export function unsupportedReason({ isSecureContext, navigator, has }: Environment = browserEnvironment()): Unsupported {
  if (!isSecureContext) return 'insecure'
  if (has('serviceWorker') && has('PushManager') && has('Notification')) return ''
  const { userAgent, maxTouchPoints, standalone } = navigator
  const apple = /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1)
  return apple && !standalone ? 'install' : 'unsupported'
}
