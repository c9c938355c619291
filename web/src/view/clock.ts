import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { locale } from '../i18n/i18n'

/** The time, updated each second while something on the screen counts. */
const now = signal(Date.now())
let watchers = 0
let timer: ReturnType<typeof setInterval> | undefined

/** useNow returns the time and redraws each second while `counting`. */
export function useNow(counting: boolean): number {
  useEffect(() => {
    if (!counting) return
    now.value = Date.now()
    if (watchers++ === 0) timer = setInterval(() => (now.value = Date.now()), 1000)
    return () => {
      if (--watchers === 0) clearInterval(timer)
    }
  }, [counting])
  return counting ? Math.max(now.value, Date.now()) : Date.now()
}

/**
 * isValidTime reports whether a time can be formatted. An agent or an older page may have written
 * anything.
 */
const isValidTime = (at: number) => Math.abs(at) <= 8.64e15

export function formatTime(at: number): string {
  if (!isValidTime(at)) return ''
  return new Intl.DateTimeFormat(locale.value, { hour: 'numeric', minute: '2-digit' }).format(at)
}

export function formatDay(at: number): string {
  if (!isValidTime(at)) return ''
  const then = new Date(at)
  const today = new Date()
  const days = Math.round((new Date(today).setHours(0, 0, 0, 0) - new Date(then).setHours(0, 0, 0, 0)) / 86_400_000)
  if (days < 2) {
    const words = new Intl.RelativeTimeFormat(locale.value, { numeric: 'auto' }).format(-days, 'day')
    return words[0]!.toLocaleUpperCase(locale.value) + words.slice(1)
  }
  const year = then.getFullYear() === today.getFullYear() ? undefined : 'numeric'
  return new Intl.DateTimeFormat(locale.value, { weekday: 'long', day: 'numeric', month: 'long', year }).format(at)
}

/** formatDate is the shortest form of a date or time. */
export function formatDate(at: number): string {
  if (!isValidTime(at)) return ''
  if (sameDay(at, Date.now())) return formatTime(at)
  if (sameDay(at, Date.now() - 86_400_000)) return formatDay(at)
  const year = new Date(at).getFullYear() === new Date().getFullYear() ? undefined : 'numeric'
  return new Intl.DateTimeFormat(locale.value, { day: 'numeric', month: 'short', year }).format(at)
}

export function sameDay(a: number, b: number): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString()
}

export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

export function formatBytes(n: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const
  const power = Math.min(3, Math.max(0, Math.floor(Math.log2(Math.max(n, 1)) / 10)))
  const unit = units[power]!
  return new Intl.NumberFormat(locale.value, { style: 'unit', unit, unitDisplay: power ? 'short' : 'long', maximumFractionDigits: power ? 1 : 0 }).format(n / 1024 ** power)
}
