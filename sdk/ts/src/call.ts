import { encode } from './codec.js'
import { frameError, LinkLostError } from './errors.js'
import type { Call, Deliver, Error as ErrorFrame, Ping, Stop } from './frames.js'
import type { Link } from './link.js'

/** Options of a call that waits. */
export interface Waiting {
  signal?: AbortSignal
}

/** Calls matches the answers of the server to requests on the live connection. */
export class Calls {
  private waiting = new Map<string, { resolve: (frame: unknown) => void; reject: (error: Error) => void }>()

  /** send writes a frame. It returns false without a connection. */
  send(link: Link | undefined, frame: Stop | Ping | Call | Deliver): boolean {
    return link?.send(encode(frame)) ?? false
  }

  /** ask writes a frame and waits for the answer to its id. It throws an error frame. */
  async ask(link: Link | undefined, frame: (Ping | Call | Deliver) & { id?: string }, signal?: AbortSignal): Promise<unknown> {
    const id = frame.id!
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }))
    try {
      if (!this.send(link, frame)) throw new LinkLostError()
      const got = (await until(answer, signal)) as ErrorFrame
      if (got.t === 'error') throw frameError(got)
      return got
    } finally {
      this.waiting.delete(id)
    }
  }

  /** answer delivers an answer to its request. It returns false when none is waiting. */
  answer(id: string, frame: unknown): boolean {
    const asked = this.waiting.get(id)
    asked?.resolve(frame)
    return asked !== undefined
  }

  /** drop fails all requests. */
  drop(error: Error = new LinkLostError()): void {
    for (const { reject } of this.waiting.values()) reject(error)
    this.waiting.clear()
  }
}

/** until waits for a promise, or throws the reason of the signal. */
export async function until<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return promise
  check(signal)
  let abort!: () => void
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(reason(signal))))
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** check throws the reason of an aborted signal. */
export function check(signal?: AbortSignal): void {
  if (signal?.aborted) throw reason(signal)
}

// Signals of React Native have no reason.
function reason(signal: AbortSignal): Error {
  return (signal.reason as Error | undefined) ?? new Error('aborted')
}
