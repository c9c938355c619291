import { signal } from '@preact/signals'
import { viewOf } from '../agent/sessions'
import { deleteDatabase } from '../keep/database'
import { loadProfile, newProfile, PROFILE, saveProfile, write, type Profile } from '../keep/profile'
import { direct, look, watch } from '../setup/api'
import { complain, inform } from '../view/notice'
import { t } from '../words/words'
import { takeFragment, takeShow, type Invitation } from './entrance'
import { Talk } from './talk'

/** The conversation of this page; undefined: nobody is signed in. */
export const talk = signal<Talk | undefined>(undefined)
/** A link that was opened and not used yet. */
export const invitation = signal<Invitation | undefined>(undefined)
/** The message or card that a notification told of and the person wants to see; empty: none. */
export const wanted = signal('')
/** Nothing is known before the disk was read. */
export const starting = signal(true)

/** begin opens what is kept, and reads the link that opened the page. */
export async function begin(): Promise<void> {
  wanted.value = takeShow()
  if (direct) {
    watch()
    void look()
  } else invitation.value = takeFragment()
  window.addEventListener('hashchange', () => {
    const id = takeShow()
    if (id) return show(id)
    const link = direct ? undefined : takeFragment()
    if (link) arrive(link)
  })
  window.addEventListener('storage', ({ key, newValue }) => {
    if (key === PROFILE && !newValue) void leave() // another tab signed out
  })
  // Chosen in a notification, and passed on by the service worker.
  navigator.serviceWorker?.addEventListener('message', ({ data }: MessageEvent<{ show?: string }>) => data.show !== undefined && show(data.show))
  const profile = loadProfile()
  if (profile) {
    if (invitation.peek()) arrive(invitation.peek()!, true)
    talk.value = await Talk.start(profile).catch((error: unknown) => {
      complain(error)
      return undefined
    })
  }
  starting.value = false
}

/** show brings the conversation to what a notification told of, as soon as it has come. */
function show(id: string): void {
  wanted.value = id
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close())
  const here = talk.peek()
  const state = here?.device.status.state
  if (state === 'replaced') void takeOver()
  else if (state === 'waiting') here?.device.reconnect()
}

/** arrive takes a link. Who is in already keeps what there is. */
function arrive(link: Invitation, known = Boolean(talk.peek())): void {
  invitation.value = link
  if (known) inform(t('alreadyPaired'))
}

/** enter gets a new device in. The server's first answer decides; until then nothing of it is kept. */
export async function enter({ url, ...entrance }: Invitation, name: string, user: string): Promise<void> {
  const old = talk.peek()
  const profile = newProfile(url, name, user)
  const next = await Talk.start(profile, entrance)
  try {
    await next.device.waitOnline({ signal: AbortSignal.timeout(20_000) })
  } catch (error) {
    const status = next.device.status
    await discard(next)
    throw error instanceof DOMException ? (status.error ?? new Error(t('unreachable'))) : error
  }
  saveProfile(profile)
  void navigator.storage?.persist?.().catch(() => false) // or a browser that runs out of room may throw the history away
  invitation.value = undefined
  talk.value = next
  if (!old) return
  const wish = old.notifying.wish.peek()
  await discard(old)
  if (wish.on && old.profile.url === url) await next.notifying.resume(wish) // the same browser, for the same agent
}

/** takeOver has this tab be the one that is connected, with what the other tab stored meanwhile. */
export async function takeOver(): Promise<void> {
  const old = talk.peek()
  if (!old) return
  await old.close()
  talk.value = await Talk.start(old.profile)
}

/** rename changes what this device is called; the server hears it with the next connection. */
export async function rename(name: string): Promise<void> {
  const old = talk.peek()
  if (!old || !name.trim() || name === old.profile.name) return
  const profile: Profile = { ...old.profile, name: name.trim() }
  saveProfile(profile)
  await old.close()
  talk.value = await Talk.start(profile)
}

/** leave ends the conversation of this page, and touches nothing that is kept. */
async function leave(): Promise<void> {
  const old = talk.peek()
  talk.value = undefined
  await old?.close()
}

/** signOut forgets the token and everything else that is kept of this device. */
export async function signOut(): Promise<void> {
  const old = talk.peek()
  saveProfile(undefined)
  talk.value = undefined
  if (old) await discard(old)
}

async function discard(old: Talk): Promise<void> {
  write('hermes.draft.' + old.profile.id, '')
  await old.notifying.signOut()
  await old.close()
  write(viewOf(old.profile.id), '')
  await deleteDatabase(old.profile.url, old.profile.id)
}
