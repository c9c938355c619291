/** Why this browser, as the page is opened in it, can show no notifications; empty: it can. */
export type Unable = '' | 'insecure' | 'install' | 'unsupported'

interface Around {
  isSecureContext: boolean
  navigator: { userAgent: string; maxTouchPoints: number; standalone?: boolean }
  has(name: 'PushManager' | 'Notification' | 'serviceWorker'): boolean
}

const here = (): Around => ({
  isSecureContext, navigator,
  has: (name) => (name === 'serviceWorker' ? name in navigator : name in window),
})

/** unable tells it. On iOS only a page on the home screen may notify, and there alone the interfaces exist. */
export function unable({ isSecureContext, navigator, has }: Around = here()): Unable {
  if (!isSecureContext) return 'insecure'
  if (has('serviceWorker') && has('PushManager') && has('Notification')) return ''
  const { userAgent, maxTouchPoints, standalone } = navigator
  const apple = /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1)
  return apple && !standalone ? 'install' : 'unsupported'
}
