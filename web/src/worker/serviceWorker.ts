import './push'
import { page, worker } from './scope'

/**
 * The service worker caches the files of the page, all of one version, and shows notifications. It
 * never stores what the server sends.
 */
declare const VERSION: string
declare const FILES: string[]

const CACHE_NAME = 'hermes-page ' + VERSION
/** The URLs of the page's files. */
const pageFiles = new Set(FILES.map((file) => new URL(file, self.location.href).href))

worker.addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE_NAME).then((cache) => cache.addAll(FILES.map((file) => new Request(file, { cache: 'reload' })))))
})

worker.addEventListener('message', (event) => {
  if (event.data === 'now') void worker.skipWaiting()
})

worker.addEventListener('activate', (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name.startsWith('hermes-page ') && name !== CACHE_NAME) await caches.delete(name)
      await worker.clients.claim()
    })(),
  )
})

worker.addEventListener('fetch', (event) => {
  const { request } = event as { request: Request }
  if (request.method !== 'GET') return
  const url = new URL(request.url)
  const address = url.origin + url.pathname
  if (!pageFiles.has(address)) return
  event.respondWith(
    (async () => {
      const cache = await caches.open(CACHE_NAME)
      return (await cache.match(address)) ?? fetch(request)
    })(),
  )
  if (address === page) event.waitUntil(refreshPage().catch(() => {})) // no network is the normal case here
})

/**
 * refreshPage updates the cached page, because the owner's settings are in it. A page of another
 * version comes with its own worker.
 */
async function refreshPage(): Promise<void> {
  const response = await fetch(page, { cache: 'no-cache' })
  if (!response.ok || response.redirected) return
  const names = (await response.clone().text()).match(/\.\/assets\/[^"]+/g) ?? []
  if (names.length > 0 && names.every((name) => pageFiles.has(new URL(name, page).href))) await (await caches.open(CACHE_NAME)).put(page, response)
}
