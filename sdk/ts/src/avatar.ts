/**
 * The avatar: a web page that shows what the agent is doing. The page defines `window.hermesAvatar`, which an app with a web view calls.
 * This module has both ends for a page in a sandboxed frame, which only messages reach.
 *
 * @packageDocumentation
 */
import type { Device } from './device.js'
import type { ActivityEvent } from './events.js'

/** The state that an avatar shows. */
export type AvatarState = 'idle' | 'thinking' | 'speaking'

/** The object `window.hermesAvatar` of an avatar page. */
export interface Avatar {
  setState(state: AvatarState): void
  /** Says or shows a line of the agent. */
  speak(text: string): void
  /** The level of the microphone while the user records, 0 to 1. */
  setVolume(level: number): void
}

/** A source of activity that an avatar can follow: a Device, or an object of the app. */
export interface TellsActivity {
  on(type: 'activity', listener: (event: ActivityEvent) => void): () => void
}

/** An avatar in a frame. */
export interface AvatarFrame extends Avatar {
  /** Shows the activity of a device from now on. It returns a function that ends that. */
  follow(device: Pick<Device, 'on'> | TellsActivity): () => void
  /** Stops driving the frame, which stays. */
  close(): void
}

/** hello asks a page that loaded earlier to say ready. */
type Message = { hermesAvatar: 'ready' | 'hello' } | { [call in keyof Avatar]: { hermesAvatar: call; value: Parameters<Avatar[call]>[0] } }[keyof Avatar]

const states: readonly string[] = ['idle', 'thinking', 'speaking']

/** stateOf returns a known state. An unknown one is idle. */
export function stateOf(state: string): AvatarState {
  return states.includes(state) ? (state as AvatarState) : 'idle'
}

/**
 * avatarFrame drives the page in a frame (`<iframe sandbox="allow-scripts" src="…">`). A page that loads, or reloads, gets the latest line
 * and the state. origin restricts a frame that keeps its origin; a sandboxed one has none.
 */
export function avatarFrame(frame: HTMLIFrameElement, origin = '*', host: Window = window): AvatarFrame {
  let ready = false
  let state: AvatarState = 'idle'
  let line: string | undefined // waiting for the page
  const post = (message: Message) => frame.contentWindow?.postMessage(message, origin)
  const hear = (event: MessageEvent<Message | null>) => {
    if (event.source !== frame.contentWindow || event.data?.hermesAvatar !== 'ready') return
    if (origin !== '*' && event.origin !== origin) return
    ready = true
    post({ hermesAvatar: 'setState', value: state })
    if (line !== undefined) post({ hermesAvatar: 'speak', value: line })
    line = undefined
  }
  host.addEventListener('message', hear)
  post({ hermesAvatar: 'hello' })
  const avatar: AvatarFrame = {
    setState(next) {
      state = stateOf(next)
      if (ready) post({ hermesAvatar: 'setState', value: state })
    },
    speak(text) {
      if (ready) post({ hermesAvatar: 'speak', value: text })
      else line = text
    },
    setVolume(level) {
      if (ready) post({ hermesAvatar: 'setVolume', value: volumeOf(level) })
    },
    follow: (device) => (device as TellsActivity).on('activity', (activity) => avatar.setState(stateOf(activity.avatar))),
    close: () => host.removeEventListener('message', hear),
  }
  return avatar
}

/**
 * avatarPage is the other end, in the page. It sets `window.hermesAvatar` for web views, and connects it to the owner of the frame. It
 * returns a function that ends that.
 */
export function avatarPage(avatar: Avatar, page: Window & { hermesAvatar?: Avatar } = window): () => void {
  page.hermesAvatar = avatar
  const greet = () => page.parent.postMessage({ hermesAvatar: 'ready' } satisfies Message, '*')
  const hear = (event: MessageEvent<Message | null>) => {
    if (event.source !== page.parent || typeof event.data !== 'object' || event.data === null) return
    const { hermesAvatar: call, value } = event.data as { hermesAvatar?: unknown; value?: unknown }
    if (call === 'hello') greet()
    else if (call === 'setState' && typeof value === 'string') avatar.setState(stateOf(value))
    else if (call === 'speak' && typeof value === 'string') avatar.speak(value)
    else if (call === 'setVolume' && typeof value === 'number') avatar.setVolume(volumeOf(value))
  }
  if (page.parent === page) return () => {} // a web view, without a parent
  page.addEventListener('message', hear)
  greet()
  return () => page.removeEventListener('message', hear)
}

function volumeOf(level: number): number {
  return Math.max(0, Math.min(1, level)) || 0
}
