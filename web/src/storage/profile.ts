import { newID } from '../conversation/id'
import { readLocal, writeLocal } from './localStorage'

/**
 * Profile identifies this browser to the server. The id stays the same until the user signs out.
 */
export interface Profile {
  id: string
  name: string
  /** The WebSocket URL. */
  url: string
  /** The user it belongs to, if that isn't the device itself. */
  user?: string
}

/** The localStorage key of the profile. */
export const PROFILE_KEY = 'hermes.profile'

export function loadProfile(): Profile | undefined {
  try {
    const p = JSON.parse(readLocal(PROFILE_KEY)) as Profile
    return p.id && p.url ? p : undefined
  } catch {
    return undefined
  }
}

export function saveProfile(profile: Profile | undefined): void {
  writeLocal(PROFILE_KEY, profile ? JSON.stringify(profile) : '')
}

/** newProfile returns a device that no server knows yet. */
export function newProfile(url: string, name: string, user = ''): Profile {
  return { id: 'web-' + newID().slice(0, 20), name, url, ...(user && { user }) }
}

/** deviceName guesses a name for this device. */
export function deviceName(): string {
  const agent = navigator.userAgent
  const system = /iPhone|iPad|Android|CrOS|Windows|Mac OS|Linux/.exec(agent)?.[0] ?? ''
  const browser = /Edg|OPR|Firefox|SamsungBrowser|Chrome|Safari/.exec(agent)?.[0] ?? ''
  const names: Record<string, string> = { CrOS: 'Chromebook', 'Mac OS': 'Mac', Edg: 'Edge', OPR: 'Opera', SamsungBrowser: 'Samsung Internet' }
  return [system, browser].filter(Boolean).map((word) => names[word] ?? word).join(' ') || 'Browser'
}
