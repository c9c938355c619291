import { nameOf } from '../view/name'
import { language } from '../words/words'
import { overview } from './state'

/** moment says when something was, to the minute. */
export function moment(at: string): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at))
}

/** ago says how long ago something was, in the largest unit that fits. */
export function ago(at: string): string {
  const seconds = Math.max(0, (Date.now() - new Date(at).getTime()) / 1000)
  const units = [['day', 86_400], ['hour', 3600], ['minute', 60]] as const
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? (['second', 1] as const)
  return new Intl.RelativeTimeFormat(language.value, { numeric: 'auto' }).format(-Math.floor(seconds / size), unit)
}

export function number(n: number): string {
  return new Intl.NumberFormat(language.value, { notation: n >= 100_000 ? 'compact' : 'standard' }).format(n)
}

/** called gives the name of a device, or its id where it has none or is not known. */
export function called(id: string): string {
  return nameOf(overview.value?.devices.find((device) => device.id === id)?.name || id)
}
