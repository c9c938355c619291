import { displayName } from '../view/displayName'
import { language, t } from '../i18n/i18n'
import { overview } from './state'

/** format writes a time, and leaves one that cannot be read as it is. */
function formatTime(at: string, timeStyle: 'short' | 'medium'): string {
  const then = new Date(at)
  return Number.isNaN(then.getTime()) ? at : new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle }).format(then)
}

/** moment says when something was, to the minute. */
export function dateTime(at: string): string {
  return formatTime(at, 'short')
}

/** precise says when something was, to the second. */
export function dateTimeSeconds(at: string): string {
  return formatTime(at, 'medium')
}

/** ago says how long ago something was, in the largest unit that fits. */
export function relativeTime(at: string): string {
  const seconds = Math.max(0, (Date.now() - new Date(at).getTime()) / 1000)
  if (Number.isNaN(seconds)) return at
  const units = [['day', 86_400], ['hour', 3600], ['minute', 60]] as const
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? (['second', 1] as const)
  return new Intl.RelativeTimeFormat(language.value, { numeric: 'auto' }).format(-Math.floor(seconds / size), unit)
}

/** ends says when a token expires, or that it has. */
export function expiryText(at: string | undefined): string {
  return at ? (new Date(at).getTime() > Date.now() ? t('adminTokenExpires', { when: dateTime(at) }) : t('adminTokenExpired')) : ''
}

export function formatNumber(n: number): string {
  return new Intl.NumberFormat(language.value, { notation: n >= 100_000 ? 'compact' : 'standard' }).format(n)
}

/** called gives the name of a device, or its id where it has none or is not known. */
export function deviceName(id: string): string {
  return displayName(overview.value?.devices.find((device) => device.id === id)?.name || id)
}

/** who is what a person is called: by a name, or by the names of the devices. The id below it is what counts. */
export function userName(id: string, name = ''): string {
  if (name && name !== id) return displayName(name)
  return overview.value!.devices.filter((device) => device.user === id && device.name !== id).map((device) => displayName(device.name)).filter(Boolean).join(', ') || id
}

/** users are the ids of all people that a device or an approval names. */
export function userIDs(): string[] {
  const { devices, pairing } = overview.value!
  return [...new Set([...pairing.approved.map((user) => user.user_id), ...devices.map((device) => device.user)])].filter(Boolean).sort()
}
