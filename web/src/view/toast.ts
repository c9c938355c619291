import { signal } from '@preact/signals'
import { errorText } from './errorText'

export interface Toast {
  id: number
  text: string
  action?: { label: string; run: () => void }
}

/** The messages at the edge of the screen. A toast without a button closes after some seconds. */
export const toasts = signal<readonly Toast[]>([])
/** The next announcement of the screen reader. */
export const announcement = signal('')

let last = 0

export function showToast(text: string, action?: Toast['action']): void {
  const id = ++last
  toasts.value = [...toasts.peek().filter((notice) => notice.text !== text).slice(-2), { id, text, action }]
  if (!action) setTimeout(() => dismissToast(id), 8000)
}

export function showError(error: unknown): void {
  showToast(errorText(error))
}

export function dismissToast(id: number): void {
  toasts.value = toasts.peek().filter((notice) => notice.id !== id)
}

/** announce has a screen reader read out a new message, or the start of a long one. */
export function announce(text: string): void {
  announcement.value = text.length > 300 ? text.slice(0, 300) + '…' : text
}
