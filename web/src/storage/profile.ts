import { newID } from '../conversation/id'
import { readLocal, writeLocal } from './localStorage'

/** Who this browser is to the server. The id stays the same until the person signs out. */
export interface Profile {
  id: string
  name: string
  /** Address of the WebSocket. */
  url: string
  /** The person it belongs to, where that is not the device itself. */
  user?: string
}

/** Where the profile is in localStorage. */
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

/** newProfile is a device that no server knows yet. */
export function newProfile(url: string, name: string, user = ''): Profile {
  return { id: 'web-' + newID().slice(0, 20), name, url, ...(user && { user }) }
}

/** deviceName guesses what a person would call this device. */
export function deviceName(): string {
  const agent = navigator.userAgent
  const system = /iPhone|iPad|Android|CrOS|Windows|Mac OS|Linux/.exec(agent)?.[0] ?? ''
  const browser = /Edg|OPR|Firefox|SamsungBrowser|Chrome|Safari/.exec(agent)?.[0] ?? ''
  const names: Record<string, string> = { CrOS: 'Chromebook', 'Mac OS': 'Mac', Edg: 'Edge', OPR: 'Opera', SamsungBrowser: 'Samsung Internet' }
  return [system, browser].filter(Boolean).map((word) => names[word] ?? word).join(' ') || 'Browser'
}
