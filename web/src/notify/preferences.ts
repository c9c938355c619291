import { read, write } from '../keep/profile'

/** A part of each day without notifications, by the clock of this device. */
export interface Quiet {
  from: string
  to: string
}

/** What the person wants of notifications on this device. */
export interface Wish {
  on: boolean
  /** Show title and words. */
  content: boolean
  quiet?: Quiet
  /** Where the server was last told to send them; it is told to stop when that is no more. */
  endpoint: string
}

/** Where the wish of a device is in localStorage. */
export const wishName = (device: string) => 'hermes.notify.' + device

export function loadWish(device: string): Wish {
  try {
    const { on, content, quiet, endpoint } = JSON.parse(read(wishName(device))) as Partial<Wish>
    return { on: on === true, content: content === true, ...(isQuiet(quiet) && { quiet }), endpoint: typeof endpoint === 'string' ? endpoint : '' }
  } catch {
    return { on: false, content: false, endpoint: '' }
  }
}

export function saveWish(device: string, wish: Wish | undefined): void {
  write(wishName(device), wish ? JSON.stringify(wish) : '')
}

const clock = /^([01]\d|2[0-3]):[0-5]\d$/

/** isQuiet reports whether these are hours that the server takes. */
export function isQuiet(quiet: Quiet | undefined): quiet is Quiet {
  return quiet !== undefined && clock.test(quiet.from) && clock.test(quiet.to) && quiet.from !== quiet.to
}

/** timeZone is the name of the one that this device is in. */
export function timeZone(): string {
  const { timeZone: name } = Intl.DateTimeFormat().resolvedOptions()
  return !name || name === 'Etc/Unknown' ? 'UTC' : name
}
