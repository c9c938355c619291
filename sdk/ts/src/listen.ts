import type { Event } from './events.js'

type Listener = (event: Event) => unknown

/** Listeners holds the functions that Device.on added. */
export class Listeners {
  private all = new Map<string, Set<Listener>>()
  private due = new Map<string, () => Event>() // states to report
  private waiters: (() => void)[] = []

  add(type: string, listener: Listener): () => void {
    const own: Listener = (event) => listener(event) // so that the same function can be added twice
    const set = this.all.get(type) ?? new Set()
    this.all.set(type, set.add(own))
    return () => void set.delete(own)
  }

  /** Whether somebody listens to messages. */
  get flowing(): boolean {
    return this.of('message').length + this.of('*').length > 0
  }

  /** dispatch calls all listeners of an event, one after the other. It returns false when one of them threw or rejected. */
  async dispatch(event: Event): Promise<boolean> {
    let handled = true
    const states = event.type === 'status' || event.type === 'activity' // tell has reported them
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

  /** tell reports the newest state to its listeners, right after the current call. */
  tell(type: 'status' | 'activity', state: () => Event): void {
    if (this.due.size === 0) queueMicrotask(() => this.bring())
    this.due.set(type, state)
  }

  /** changed resolves after the next report of a state. */
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

/** uncaught reports an error the way the platform reports uncaught errors. */
function uncaught(error: unknown): void {
  setTimeout(() => {
    throw error
  })
}
