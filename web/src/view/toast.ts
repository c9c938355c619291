import { signal } from '@preact/signals'
import { explain } from './explain'

export interface Notice {
  id: number
  text: string
  action?: { label: string; run: () => void }
}

/** What is told at the edge of the screen, until it was read or some seconds are over. */
export const notices = signal<readonly Notice[]>([])
/** What a screen reader says next. */
export const spoken = signal('')

let last = 0

export function inform(text: string, action?: Notice['action']): void {
  const id = ++last
  notices.value = [...notices.peek().filter((notice) => notice.text !== text).slice(-2), { id, text, action }]
  if (!action) setTimeout(() => dismiss(id), 8000)
}

export function complain(error: unknown): void {
  inform(explain(error))
}

export function dismiss(id: number): void {
  notices.value = notices.peek().filter((notice) => notice.id !== id)
}

/** announce has a screen reader say a message that has come, its beginning where it is long. */
export function announce(text: string): void {
  spoken.value = text.length > 300 ? text.slice(0, 300) + '…' : text
}
