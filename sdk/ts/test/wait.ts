import type { Device, Event, EventOf } from '../src/index.js'

/** How long a test waits for a condition on a busy machine, in milliseconds. */
const PATIENCE = Number(process.env.PATIENCE ?? 30_000)

/** eventually polls until the condition holds. */
export async function eventually<T>(what: string, condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (const end = Date.now() + PATIENCE; ; ) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error('timed out: ' + what)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** within returns a promise that must resolve in time. */
export async function within<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error('timed out: ' + what)), PATIENCE)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Collected holds the events of a device. */
export class Collected {
  readonly events: Event[] = []
  readonly ended: Promise<void>

  constructor(device: Device, handle: (event: Event) => unknown = () => {}) {
    this.ended = (async () => {
      for await (const event of device.events()) {
        this.events.push(event)
        await handle(event)
      }
    })()
  }

  of<T extends Event['type']>(type: T): EventOf<T>[] {
    return this.events.filter((event): event is EventOf<T> => event.type === type)
  }

  first<T extends Event['type']>(type: T, is: (event: EventOf<T>) => boolean = () => true): Promise<EventOf<T>> {
    return eventually(`an event ${type}`, () => this.of(type).find(is)).catch((error: Error) => {
      throw new Error(`${error.message}; last events: ${JSON.stringify(this.events.slice(-8)).slice(0, 2000)}`)
    })
  }

  /** The texts of the final messages. */
  finals(): string[] {
    return this.of('message').filter((message) => message.final).map((message) => message.text)
  }
}
