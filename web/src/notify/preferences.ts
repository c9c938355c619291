import { readLocal, writeLocal } from '../storage/localStorage'

/** A part of each day without notifications, by the clock of this device. */
export interface QuietHours {
  from: string
  to: string
}

/** What the person wants of notifications on this device. */
export interface NotificationPreferences {
  on: boolean
  /** Show title and words. */
  content: boolean
  quiet?: QuietHours
  /** Where the server was last told to send them; it is told to stop when that is no more. */
  endpoint: string
}

/** Where the wish of a device is in localStorage. */
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

/** isQuiet reports whether these are hours that the server takes. */
export function isQuietHours(quiet: QuietHours | undefined): quiet is QuietHours {
  return quiet !== undefined && clock.test(quiet.from) && clock.test(quiet.to) && quiet.from !== quiet.to
}

/** timeZone is the name of the one that this device is in. */
export function timeZone(): string {
  const { timeZone: name } = Intl.DateTimeFormat().resolvedOptions()
  return !name || name === 'Etc/Unknown' ? 'UTC' : name
}
