/** Why this browser, as the page is opened in it, can show no notifications; empty: it can. */
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

/** unable tells it. On iOS only a page on the home screen may notify, and there alone the interfaces exist. */
export function unsupportedReason({ isSecureContext, navigator, has }: Environment = browserEnvironment()): Unsupported {
  if (!isSecureContext) return 'insecure'
  if (has('serviceWorker') && has('PushManager') && has('Notification')) return ''
  const { userAgent, maxTouchPoints, standalone } = navigator
  const apple = /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1)
  return apple && !standalone ? 'install' : 'unsupported'
}
