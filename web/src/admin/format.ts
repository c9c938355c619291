import { displayName } from '../view/displayName'
import { language, t } from '../i18n/i18n'
import { overview } from './state'

/** formatTime formats a time. It returns a time it can't parse unchanged. */
function formatTime(at: string, timeStyle: 'short' | 'medium'): string {
  const then = new Date(at)
  return Number.isNaN(then.getTime()) ? at : new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle }).format(then)
}

/** dateTime formats a time to the minute. */
export function dateTime(at: string): string {
  return formatTime(at, 'short')
}

/** dateTimeSeconds formats a time to the second. */
export function dateTimeSeconds(at: string): string {
  return formatTime(at, 'medium')
}

/** relativeTime says how long ago a time was, in the largest unit that fits. */
export function relativeTime(at: string): string {
  const seconds = Math.max(0, (Date.now() - new Date(at).getTime()) / 1000)
  if (Number.isNaN(seconds)) return at
  const units = [['day', 86_400], ['hour', 3600], ['minute', 60]] as const
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? (['second', 1] as const)
  return new Intl.RelativeTimeFormat(language.value, { numeric: 'auto' }).format(-Math.floor(seconds / size), unit)
}

/** expiryText says when a token expires, or that it has expired. */
export function expiryText(at: string | undefined): string {
  return at ? (new Date(at).getTime() > Date.now() ? t('adminTokenExpires', { when: dateTime(at) }) : t('adminTokenExpired')) : ''
}

export function formatNumber(n: number): string {
  return new Intl.NumberFormat(language.value, { notation: n >= 100_000 ? 'compact' : 'standard' }).format(n)
}

/** deviceName returns the name of a device, or its id if it has no name or is unknown. */
export function deviceName(id: string): string {
  return displayName(overview.value?.devices.find((device) => device.id === id)?.name || id)
}

/**
 * userName returns the name of a user, or the names of the user's devices. The page shows the id,
 * which identifies the user, below it.
 */
export function userName(id: string, name = ''): string {
  if (name && name !== id) return displayName(name)
  return overview.value!.devices.filter((device) => device.user === id && device.name !== id).map((device) => displayName(device.name)).filter(Boolean).join(', ') || id
}

/** userIDs returns the ids of all users that have a device or an approval. */
export function userIDs(): string[] {
  const { devices, pairing } = overview.value!
  return [...new Set([...pairing.approved.map((user) => user.user_id), ...devices.map((device) => device.user)])].filter(Boolean).sort()
}
