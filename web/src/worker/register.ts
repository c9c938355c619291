import { showToast } from '../view/toast'
import { workerAddress } from '../view/trustedTypes'
import { t } from '../i18n/i18n'

/** work has the page open without a network, where the browser allows it: on https and on this machine. A new version waits for a word. */
export function registerWorker(): void {
  if (!('serviceWorker' in navigator) || !isSecureContext) return
  let asked = false
  navigator.serviceWorker.addEventListener('controllerchange', () => {
    if (asked) location.reload()
  })
  const ask = (worker: ServiceWorker | null) => {
    if (!worker || !navigator.serviceWorker.controller) return // the first one is no news
    showToast(t('newVersion'), { label: t('reload'), run: () => {
      asked = true
      worker.postMessage('now')
    } })
  }
  navigator.serviceWorker.register(workerAddress()).then((registration) => {
    ask(registration.waiting)
    registration.addEventListener('updatefound', () => {
      const next = registration.installing
      next?.addEventListener('statechange', () => {
        if (next.state === 'installed') ask(next)
      })
    })
  }, () => {
    // Without it the page works, and needs the network to open.
  })
}
