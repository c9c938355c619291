import { decode } from './codec.js'
import type { AgentState, Capabilities, CapabilitiesChanged } from './frames.js'

/**
 * The state of the connection. `connecting`: an attempt is under way. `online`: the server sent ready. `waiting`: the next
 * attempt is at Status.until, or at Device.reconnect after Device.suspend. `noAccess`: the server rejects this device.
 * `replaced`: a newer connection of the same device took over. These two last until Device.reconnect. `closed` is final.
 */
export type State = 'connecting' | 'online' | 'waiting' | 'noAccess' | 'replaced' | 'closed'

/** Everything that a connection line shows. From session on, values stay at their last known while the device is not online. */
export interface Status {
  state: State
  /** While waiting, the time of the next attempt, in milliseconds like Date.now(); 0 where none is planned. */
  until: number
  /**
   * The error to show: why there is no access or, after Config.patience, why connecting fails. A short interruption, a phone that
   * wakes up, or a server that restarts is not an error.
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
  /** What the connection to the agent supports now. Do not offer what is false. */
  capabilities: Capabilities
  /** Empty before the first ready. */
  agent: AgentState
  approved: boolean
  /** The server's message to a device without approval; it holds the approval code. */
  pairing: string

  /** When this device may answer cards, in milliseconds like Date.now(): a new device waits for a while. 0: it need not wait. */
  answersAt: number

  /** The number of messages, files and answers without an ack. */
  unconfirmed: number
}

/** answersAt returns Status.answersAt for capabilities that have just come. It counts seconds, because the two clocks may differ. */
export const answersAt = ({ answers_in }: Capabilities): number => (answers_in > 0 ? Date.now() + answers_in * 1000 : 0)

/** noStatus returns the status of a new device. */
export function noStatus(): Status {
  const { capabilities } = decode('{"t":"capabilities"}') as CapabilitiesChanged
  return {
    state: 'connecting', until: 0, since: Date.now(), session: '', server: '', avatarUrl: '', capabilities, agent: '', approved: false,
    pairing: '', answersAt: 0, unconfirmed: 0,
  }
}
