import type { Event } from './events.js'

type Listener = (event: Event) => unknown

/** Listeners are what was added with Device.on. */
export class Listeners {
  private all = new Map<string, Set<Listener>>()
  private due = new Map<string, () => Event>() // states to be told
  private waiters: (() => void)[] = []

  add(type: string, listener: Listener): () => void {
    const own: Listener = (event) => listener(event) // so that the same function may be added twice
    const set = this.all.get(type) ?? new Set()
    this.all.set(type, set.add(own))
    return () => void set.delete(own)
  }

  /** Whether somebody takes the messages. */
  get flowing(): boolean {
    return this.of('message').length + this.of('*').length > 0
  }

  /** dispatch calls the listeners of an event, one after the other; false: one of them threw or rejected. The others are called all the same. */
  async dispatch(event: Event): Promise<boolean> {
    let handled = true
    const states = event.type === 'status' || event.type === 'activity' // were told
    for (const listener of [...(states ? [] : this.of(event.type)), ...this.of('*')]) {
      try {
        await listener(event)
      } catch (error) {
        handled = false
        uncaught(error)
      }
    }
    return handled
  }

  /** tell brings a state to its listeners at once: the newest, after what is going on now. */
  tell(type: 'status' | 'activity', state: () => Event): void {
    if (this.due.size === 0) queueMicrotask(() => this.bring())
    this.due.set(type, state)
  }

  /** changed is kept when the next state was told. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  private bring(): void {
    const due = [...this.due]
    this.due.clear()
    for (const wake of this.waiters.splice(0)) wake()
    for (const [type, state] of due) {
      const event = state()
      for (const listener of this.of(type)) {
        try {
          void Promise.resolve(listener(event)).catch(uncaught)
        } catch (error) {
          uncaught(error)
        }
      }
    }
  }

  private of(type: string): Listener[] {
    return [...(this.all.get(type) ?? [])]
  }
}

/** uncaught reports an error where the platform reports those that nobody caught. */
function uncaught(error: unknown): void {
  setTimeout(() => {
    throw error
  })
}
