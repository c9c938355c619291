import { signal } from '@preact/signals'
import { readLocal, writeLocal } from '../storage/localStorage'

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const STORAGE_KEY = 'hermes.theme'

export const theme = signal<Theme>(themes.find((name) => name === readLocal(STORAGE_KEY)) ?? 'auto')

export function chooseTheme(next: Theme): void {
  writeLocal(STORAGE_KEY, next === 'auto' ? '' : next)
  theme.value = next
  applyTheme()
}

export function applyTheme(): void {
  if (theme.peek() === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.peek()
}
