import { decode } from './codec.js'
import type { AgentState, Capabilities, CapabilitiesChanged } from './frames.js'

/**
 * How the connection stands. `connecting`: an attempt is under way. `online`: ready came. `waiting`: the next attempt is at
 * Status.until, or at Device.reconnect after Device.suspend. `noAccess`: the server refuses this device. `replaced`: a newer
 * connection of the same device took over. Those two last until Device.reconnect. `closed` is the end.
 */
export type State = 'connecting' | 'online' | 'waiting' | 'noAccess' | 'replaced' | 'closed'

/** Everything a connection line shows. From session on, the last known values stay while the device is not online. */
export interface Status {
  state: State
  /** While waiting, when the next attempt is made, in milliseconds like Date.now(); 0 where none is planned. */
  until: number
  /**
   * What to tell the person: why there is no access, or, once Config.patience is over, why no connection comes about. A short
   * interruption, a phone that wakes up, or a server that restarts is no error.
   */
  error?: Error
  /** When state began, in milliseconds like Date.now(). */
  since: number

  /** Name of the conversation. */
  session: string
  /** Name and version of the server. */
  server: string
  /** A page to show as the avatar, where the owner set one. */
  avatarUrl: string
  /** What works now. What is false must not be offered. */
  capabilities: Capabilities
  /** Empty before the first ready. */
  agent: AgentState
  approved: boolean
  /** What the server said to a device that is not approved: holds the pairing code. */
  pairing: string

  /** When this device may answer cards, in milliseconds like Date.now(): a new device waits for a while. 0: it does not wait. */
  answersAt: number

  /** Messages, files and answers without receipt. */
  unconfirmed: number
}

/** answersAt is Status.answersAt for capabilities that came just now: the two clocks may differ, seconds do not. */
export const answersAt = ({ answers_in }: Capabilities): number => (answers_in > 0 ? Date.now() + answers_in * 1000 : 0)

/** noStatus is how a device begins. */
export function noStatus(): Status {
  const { capabilities } = decode('{"t":"capabilities"}') as CapabilitiesChanged
  return {
    state: 'connecting', until: 0, since: Date.now(), session: '', server: '', avatarUrl: '', capabilities, agent: '', approved: false,
    pairing: '', answersAt: 0, unconfirmed: 0,
  }
}
