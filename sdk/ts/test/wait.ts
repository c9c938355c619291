import type { Device, Event, EventOf } from '../src/index.js'

/** How long a condition may take on a busy machine before a test gives up. */
const PATIENCE = Number(process.env.PATIENCE ?? 30_000)

/** eventually looks again and again until the condition holds. */
export async function eventually<T>(what: string, condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (const end = Date.now() + PATIENCE; ; ) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error('never: ' + what)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** within is a promise that must be kept before the patience ends. */
export async function within<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error('never: ' + what)), PATIENCE)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Collected is what came out of a device. */
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
      throw new Error(`${error.message}; what came last: ${JSON.stringify(this.events.slice(-8)).slice(0, 2000)}`)
    })
  }

  /** Texts of the final messages. */
  finals(): string[] {
    return this.of('message').filter((message) => message.final).map((message) => message.text)
  }
}
