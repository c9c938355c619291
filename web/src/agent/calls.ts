import type { Device, Status } from '@hermes-mobile/sdk'
import type { Signal } from '@preact/signals'

/** A call of the agent is given up after this time. The server itself waits for 30 seconds. */
const TIMEOUT = 40_000

/** Calls are what the agent answers beside the conversation (doc/protocol.md §9), each only while it is offered. */
export class Calls {
  constructor(
    private readonly device: Device,
    readonly status: Signal<Status>,
  ) {}

  /** has tells whether a method is there, as far as is known: it stays while the connection is gone. */
  supports(method: string): boolean {
    const { approved, capabilities } = this.status.value
    return approved && capabilities.call.includes(method)
  }

  /** offers tells whether a method can be called now. A component that asks is drawn anew when that changes. */
  canCall(method: string): boolean {
    return this.status.value.state === 'online' && this.supports(method)
  }

  call<T>(method: string, params: object = {}): Promise<T> {
    return this.device.call<T>(method, params, { signal: AbortSignal.timeout(TIMEOUT) })
  }
}
