import { readLocal, writeLocal } from '../storage/localStorage'

/** QuietHours is a part of each day without notifications, in this device's time zone. */
export interface QuietHours {
  from: string
  to: string
}

/** NotificationPreferences are the user's choices for notifications on this device. */
export interface NotificationPreferences {
  on: boolean
  /** Show title and text. */
  content: boolean
  quiet?: QuietHours
  /** The endpoint that the server last got. The server is told when it ends. */
  endpoint: string
}

/** The localStorage key of a device's preferences. */
export const preferencesKey = (device: string) => 'hermes.notify.' + device

export function loadPreferences(device: string): NotificationPreferences {
  try {
    const { on, content, quiet, endpoint } = JSON.parse(readLocal(preferencesKey(device))) as Partial<NotificationPreferences>
    return { on: on === true, content: content === true, ...(isQuietHours(quiet) && { quiet }), endpoint: typeof endpoint === 'string' ? endpoint : '' }
  } catch {
    return { on: false, content: false, endpoint: '' }
  }
}

export function savePreferences(device: string, preferences: NotificationPreferences | undefined): void {
  writeLocal(preferencesKey(device), preferences ? JSON.stringify(preferences) : '')
}

const clock = /^([01]\d|2[0-3]):[0-5]\d$/

/** isQuietHours reports whether the server accepts these hours. */
export function isQuietHours(quiet: QuietHours | undefined): quiet is QuietHours {
  return quiet !== undefined && clock.test(quiet.from) && clock.test(quiet.to) && quiet.from !== quiet.to
}

/** timeZone returns the name of this device's time zone. */
export function timeZone(): string {
  const { timeZone: name } = Intl.DateTimeFormat().resolvedOptions()
  return !name || name === 'Etc/Unknown' ? 'UTC' : name
}
