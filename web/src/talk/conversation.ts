import { batch, signal, type Signal } from '@preact/signals'
import type { History } from '../keep/history'
import type { Fresh, Item } from './item'

/** So many items are read from the disk at a time. */
const PAGE = 60

/** A frame of the screen, in milliseconds. */
const FRAME = 16

/**
 * Conversation is what is on the screen: the order of the items, and a signal for each, so that a change redraws one message and no
 * other. Steps of a reply that is being written are shown at most once a frame of the screen; whatever is final is shown at once, and is
 * on the disk when put returns.
 */
export class Conversation {
  readonly order = signal<readonly string[]>([])
  /** Older items are on the disk. */
  readonly more = signal(false)
  private readonly items = new Map<string, Signal<Item>>()
  private readonly steps = new Map<string, Fresh>()
  private drawing = false
  private next = 1
  private loading: Promise<void> | undefined

  constructor(readonly history: History) {}

  at(key: string): Signal<Item> | undefined {
    return this.items.get(key)
  }

  get(key: string): Item | undefined {
    return this.items.get(key)?.peek()
  }

  /** load shows the newest of what is kept. */
  async load(): Promise<void> {
    const found = await this.history.before(Infinity, PAGE)
    this.next = (found.at(-1)?.n ?? 0) + 1
    batch(() => {
      for (const item of found) this.items.set(item.key, signal(item))
      this.order.value = found.map((item) => item.key)
      this.more.value = found.length === PAGE
    })
  }

  /** earlier shows what stands before the first item on the screen. */
  earlier(): Promise<void> {
    this.loading ??= this.readEarlier().finally(() => (this.loading = undefined))
    return this.loading
  }

  private async readEarlier(): Promise<void> {
    const first = this.get(this.order.peek()[0] ?? '')
    if (!first) return
    const found = (await this.history.before(first.n, PAGE)).filter((item) => !this.items.has(item.key))
    batch(() => {
      for (const item of found) this.items.set(item.key, signal(item))
      this.order.value = [...found.map((item) => item.key), ...this.order.peek()]
      this.more.value = found.length === PAGE
    })
  }

  /** place gives an item its number and time, those it had where it is known. */
  place(fresh: Fresh): Item {
    const known = this.get(fresh.key)
    return { ...fresh, n: fresh.n ?? known?.n ?? this.next++, at: fresh.at ?? known?.at ?? Date.now() } as Item
  }

  /** show puts an item on the screen, and not on the disk. */
  show(fresh: Fresh): Item {
    this.steps.delete(fresh.key)
    const item = this.place(fresh)
    const known = this.items.get(item.key)
    if (known) known.value = item
    else {
      batch(() => {
        this.items.set(item.key, signal(item))
        this.order.value = [...this.order.peek(), item.key]
      })
    }
    return item
  }

  /**
   * step shows an item with the next frame of the screen, the newest only. Where drawing takes long, the page is left to the person for as
   * long again.
   */
  step(fresh: Fresh): void {
    this.steps.set(fresh.key, fresh)
    if (this.drawing) return
    this.drawing = true
    if (document.visibilityState === 'visible') requestAnimationFrame(() => this.draw())
    else setTimeout(() => this.draw(), 500) // a hidden page has no frames
  }

  private draw(): void {
    const began = performance.now()
    batch(() => [...this.steps.values()].forEach((step) => this.show(step)))
    const after = () => {
      this.drawing = false
      const [next] = this.steps.values()
      if (next) this.step(next)
    }
    setTimeout(() => {
      const took = performance.now() - began // with layout and paint
      if (took < FRAME) after()
      else setTimeout(after, Math.min(took, 200))
    })
  }

  /** put shows an item and keeps it. One that was kept before and is not on the screen keeps its place. */
  async put(fresh: Fresh, blob?: Blob): Promise<Item> {
    if (!this.items.has(fresh.key)) {
      const old = await this.history.get(fresh.key)
      if (old) {
        const item = { ...fresh, n: old.n, at: old.at } as Item
        await this.history.put(item, blob)
        return item
      }
    }
    const item = this.show(fresh)
    await this.history.put(item, blob)
    return item
  }

  /** change alters an item where it is there, on the screen and on the disk. */
  async change<T extends Item>(key: string, changes: Partial<T> | ((item: T) => Partial<T>)): Promise<void> {
    const item = this.get(key) ?? (await this.history.get(key))
    if (!item) return
    const now = this.get(key) ?? item
    await this.put({ ...now, ...(typeof changes === 'function' ? changes(now as T) : changes) } as Fresh)
  }

  async remove(key: string): Promise<void> {
    this.order.value = this.order.peek().filter((other) => other !== key)
    this.items.delete(key)
    await this.history.remove(key)
  }

  /** all gives the items on the screen. */
  all(): Item[] {
    return this.order.peek().flatMap((key) => this.get(key) ?? [])
  }

  /** clear forgets everything except what is still to be sent or is being written. */
  async clear(): Promise<void> {
    const keep = new Set(this.all().filter((item) => item.progress === 'waiting' || (item.kind === 'text' && !item.final)).map((item) => item.key))
    for (const key of [...this.items.keys()]) if (!keep.has(key)) this.items.delete(key)
    batch(() => {
      this.order.value = this.order.peek().filter((key) => keep.has(key))
      this.more.value = false
    })
    await this.history.clear(keep)
  }
}
