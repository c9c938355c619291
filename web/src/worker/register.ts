import { showToast } from '../view/toast'
import { workerAddress } from '../view/trustedTypes'
import { t } from '../i18n/i18n'

/**
 * registerWorker makes the page open without a network, on HTTPS and on this machine. A new version
 * waits for the user to reload.
 */
export function registerWorker(): void {
  if (!('serviceWorker' in navigator) || !isSecureContext) return
  let asked = false
  navigator.serviceWorker.addEventListener('controllerchange', () => {
    if (asked) location.reload()
  })
  const ask = (worker: ServiceWorker | null) => {
    if (!worker || !navigator.serviceWorker.controller) return // the first one isn't an update
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
    // The page works without it, but needs the network to open.
  })
}
