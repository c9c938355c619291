import type { Device, Status } from '@hermes-mobile/sdk'
import type { Signal } from '@preact/signals'

/** The timeout of a call, in milliseconds. The server's own timeout is 30 seconds. */
const TIMEOUT = 40_000

/** Calls sends calls to the agent (doc/protocol.md §9). */
export class Calls {
  constructor(
    private readonly device: Device,
    readonly status: Signal<Status>,
  ) {}

  /**
   * supports reports whether the agent offers a method. It keeps the last known answer while the
   * connection is down.
   */
  supports(method: string): boolean {
    const { approved, capabilities } = this.status.value
    return approved && capabilities.call.includes(method)
  }

  /**
   * canCall reports whether a method can be called now. Components that use it redraw when that
   * changes.
   */
  canCall(method: string): boolean {
    return this.status.value.state === 'online' && this.supports(method)
  }

  call<T>(method: string, params: object = {}): Promise<T> {
    return this.device.call<T>(method, params, { signal: AbortSignal.timeout(TIMEOUT) })
  }
}
