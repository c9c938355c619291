/** The part of a service worker's global scope that is used here. */
export interface PageWindow {
  url: string
  focused: boolean
  visibilityState: DocumentVisibilityState
  focus(): Promise<unknown>
  postMessage(message: unknown, transfer?: Transferable[]): void
}

export interface ShownNotification {
  tag: string
  data: { notice?: import('../notify/notification').PushNotice } | null
  close(): void
}

export interface WorkerScope {
  registration: {
    scope: string
    pushManager: PushManager
    showNotification(title: string, options: object): Promise<void>
    getNotifications(filter?: { tag: string }): Promise<ShownNotification[]>
  }
  clients: {
    claim(): Promise<void>
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<PageWindow[]>
    openWindow(url: string): Promise<unknown>
  }
  location: Location
  navigator: { userAgent: string; languages: readonly string[] }
  skipWaiting(): Promise<void>
  addEventListener(type: string, listener: (event: any) => void): void
}

export const worker = self as unknown as WorkerScope
/** The URL of the page. */
export const page = new URL('./', self.location.href).href
