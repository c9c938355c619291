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

/** The client of this page. undefined: nobody is signed in. */
export const currentClient = signal<Client | undefined>(undefined)
/** A pairing link that was opened but not used yet. */
export const openedInvitation = signal<Invitation | undefined>(undefined)
/** The id of the message or card that the user opened a notification for. Empty: none. */
export const notificationTarget = signal('')
/** true until storage has been read. */
export const starting = signal(true)

/** start opens the stored client and reads the link that opened the page. */
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
  // The user clicked a notification, and the service worker passed its id on.
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

/** showTarget scrolls to the item of a notification as soon as it has arrived. */
function showTarget(id: string): void {
  notificationTarget.value = id
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close())
  const client = currentClient.peek()
  const state = client?.device.status.state
  if (state === 'replaced') void takeOver()
  else if (state === 'waiting') client?.device.reconnect()
}

/** acceptInvitation stores a pairing link. If the browser is already paired, it stays so. */
function acceptInvitation(link: Invitation, known = Boolean(currentClient.peek())): void {
  openedInvitation.value = link
  if (known) showToast(t('alreadyPaired'))
}

/** pairDevice pairs this browser as a new device. Nothing is kept unless the server accepts it. */
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
  void navigator.storage?.persist?.().catch(() => false) // otherwise a browser that runs out of space may delete the history
  openedInvitation.value = undefined
  currentClient.value = next
  if (!old) return
  const preferences = old.notifications.preferences.peek()
  await deleteClient(old)
  if (preferences.on && old.profile.url === url) await next.notifications.adopt(preferences) // the same browser with the same agent
}

/** takeOver connects this tab instead of another one, with what that tab stored meanwhile. */
export async function takeOver(): Promise<void> {
  const old = currentClient.peek()
  if (!old) return
  await old.close()
  currentClient.value = await Client.start(old.profile)
}

/**
 * renameDevice changes the name of this device. The server receives it with the next connection.
 */
export async function renameDevice(name: string): Promise<void> {
  const old = currentClient.peek()
  if (!old || !name.trim() || name === old.profile.name) return
  const profile: Profile = { ...old.profile, name: name.trim() }
  saveProfile(profile)
  await old.close()
  currentClient.value = await Client.start(profile)
}

/** closeClient closes the client and deletes nothing. */
async function closeClient(): Promise<void> {
  const old = currentClient.peek()
  currentClient.value = undefined
  await old?.close()
}

/** signOut deletes the token and everything else that is stored for this device. */
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
