import { signal } from '@preact/signals'
import { viewKey } from '../agent/sessions'
import { deleteDatabase } from '../storage/database'
import { writeLocal } from '../storage/localStorage'
import { loadProfile, newProfile, PROFILE_KEY, saveProfile, type Profile } from '../storage/profile'
import { isDirectClient, loadState, reportForeground } from '../connect/api'
import { showError, showToast } from '../view/toast'
import { t } from '../i18n/i18n'
import { takePairingLink, takeNotificationTarget, type Invitation } from './address'
import { Client } from './client'

/** The conversation of this page; undefined: nobody is signed in. */
export const currentClient = signal<Client | undefined>(undefined)
/** A link that was opened and not used yet. */
export const openedInvitation = signal<Invitation | undefined>(undefined)
/** The message or card that a notification told of and the person wants to see; empty: none. */
export const notificationTarget = signal('')
/** Nothing is known before the disk was read. */
export const starting = signal(true)

/** begin opens what is kept, and reads the link that opened the page. */
export async function start(): Promise<void> {
  notificationTarget.value = takeNotificationTarget()
  if (isDirectClient) {
    reportForeground()
    void loadState()
  } else openedInvitation.value = takePairingLink()
  window.addEventListener('hashchange', () => {
    const id = takeNotificationTarget()
    if (id) return showTarget(id)
    const link = isDirectClient ? undefined : takePairingLink()
    if (link) acceptInvitation(link)
  })
  window.addEventListener('storage', ({ key, newValue }) => {
    if (key === PROFILE_KEY && !newValue) void closeClient() // another tab signed out
  })
  // Chosen in a notification, and passed on by the service worker.
  navigator.serviceWorker?.addEventListener('message', ({ data }: MessageEvent<{ show?: string }>) => data.show !== undefined && showTarget(data.show))
  const profile = loadProfile()
  if (profile) {
    if (openedInvitation.peek()) acceptInvitation(openedInvitation.peek()!, true)
    currentClient.value = await Client.start(profile).catch((error: unknown) => {
      showError(error)
      return undefined
    })
  }
  starting.value = false
}

/** show brings the conversation to what a notification told of, as soon as it has come. */
function showTarget(id: string): void {
  notificationTarget.value = id
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close())
  const client = currentClient.peek()
  const state = client?.device.status.state
  if (state === 'replaced') void takeOver()
  else if (state === 'waiting') client?.device.reconnect()
}

/** arrive takes a link. Who is in already keeps what there is. */
function acceptInvitation(link: Invitation, known = Boolean(currentClient.peek())): void {
  openedInvitation.value = link
  if (known) showToast(t('alreadyPaired'))
}

/** enter gets a new device in. The server's first answer decides; until then nothing of it is kept. */
export async function pairDevice({ url, ...entrance }: Invitation, name: string, user: string): Promise<void> {
  const old = currentClient.peek()
  const profile = newProfile(url, name, user)
  const next = await Client.start(profile, entrance)
  try {
    await next.device.waitOnline({ signal: AbortSignal.timeout(20_000) })
  } catch (error) {
    const status = next.device.status
    await deleteClient(next)
    throw error instanceof DOMException ? (status.error ?? new Error(t('unreachable'))) : error
  }
  saveProfile(profile)
  void navigator.storage?.persist?.().catch(() => false) // or a browser that runs out of room may throw the history away
  openedInvitation.value = undefined
  currentClient.value = next
  if (!old) return
  const preferences = old.notifications.preferences.peek()
  await deleteClient(old)
  if (preferences.on && old.profile.url === url) await next.notifications.adopt(preferences) // the same browser, for the same agent
}

/** takeOver has this tab be the one that is connected, with what the other tab stored meanwhile. */
export async function takeOver(): Promise<void> {
  const old = currentClient.peek()
  if (!old) return
  await old.close()
  currentClient.value = await Client.start(old.profile)
}

/** rename changes what this device is called; the server hears it with the next connection. */
export async function renameDevice(name: string): Promise<void> {
  const old = currentClient.peek()
  if (!old || !name.trim() || name === old.profile.name) return
  const profile: Profile = { ...old.profile, name: name.trim() }
  saveProfile(profile)
  await old.close()
  currentClient.value = await Client.start(profile)
}

/** leave ends the conversation of this page, and touches nothing that is kept. */
async function closeClient(): Promise<void> {
  const old = currentClient.peek()
  currentClient.value = undefined
  await old?.close()
}

/** signOut forgets the token and everything else that is kept of this device. */
export async function signOut(): Promise<void> {
  const old = currentClient.peek()
  saveProfile(undefined)
  currentClient.value = undefined
  if (old) await deleteClient(old)
}

async function deleteClient(old: Client): Promise<void> {
  writeLocal('hermes.draft.' + old.profile.id, '')
  await old.notifications.signOut()
  await old.close()
  writeLocal(viewKey(old.profile.id), '')
  await deleteDatabase(old.profile.url, old.profile.id)
}
