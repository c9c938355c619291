import { signal } from '@preact/signals'
import { read, write } from '../keep/profile'

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const CHOSEN = 'hermes.theme'

export const theme = signal<Theme>(themes.find((name) => name === read(CHOSEN)) ?? 'auto')

export function chooseTheme(next: Theme): void {
  write(CHOSEN, next === 'auto' ? '' : next)
  theme.value = next
  applyTheme()
}

export function applyTheme(): void {
  if (theme.peek() === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.peek()
}
