import { batch, signal, type Signal } from '@preact/signals'
import type { History } from '../keep/history'
import type { Fresh, Item } from './item'

/** So many items are read from the disk at a time. */
const PAGE = 60

/** A frame of the screen, in milliseconds. */
const FRAME = 16

/** View is a session of the gateway, which is shown in place of all that this device has. */
export interface View {
  session: string
  title: string
  /** Of what this device has, what has a higher place is shown below the session's history: what came after the session was opened. */
  floor: number
  /** The newest message of the session's history then. What followed came to this device by itself. */
  last: number
}

/** Past is where the history of a view comes from: older items with each call, undefined where there are none left. */
export type Past = () => Promise<Item[] | undefined>

/** pending is what has no end yet, so that no session's history can have it. */
function pending(item: Item): boolean {
  if (item.kind === 'card') return !item.done && item.until > Date.now()
  return item.progress === 'waiting' || item.progress === 'queued' || item.progress === 'failed' || (item.kind === 'text' && !item.final)
}

/**
 * Conversation is what is on the screen: the order of the items, and a signal for each, so that a change redraws one message and no
 * other. Steps of a reply that is being written are shown at most once a frame of the screen; whatever is final is shown at once, and is
 * on the disk when put returns.
 */
export class Conversation {
  readonly order = signal<readonly string[]>([])
  /** There are older items, on the disk or at the gateway. */
  readonly more = signal(false)
  /** Undefined: all that this device has is shown. */
  readonly view = signal<View | undefined>(undefined)
  private past: Past | undefined
  private deeper = false // the disk has older items that are to be shown
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
    const floor = this.floor
    this.next = Math.max(this.next, (found.at(-1)?.n ?? 0) + 1, floor + 1)
    const shown = found.filter((item) => item.n > floor || pending(item))
    batch(() => {
      for (const item of shown) if (!this.items.has(item.key)) this.items.set(item.key, signal(item))
      this.order.value = [...shown.map((item) => item.key), ...this.order.peek().filter((key) => !shown.some((item) => item.key === key))]
      this.noteMore(found)
    })
  }

  private get floor(): number {
    return this.view.peek()?.floor ?? 0
  }

  /** noteMore notes whether there is anything before what was just read. */
  private noteMore(found: readonly Item[]): void {
    this.deeper = found.length === PAGE && found[0]!.n > this.floor
    this.more.value = this.deeper || this.past !== undefined
  }

  /** look shows a session in place of what is on the screen, which stays on the disk. */
  async look(view: Omit<View, 'floor'>, past: Past): Promise<void> {
    const keep = new Set(this.all().filter(pending).map((item) => item.key))
    batch(() => {
      this.view.value = { ...view, floor: this.next - 1 }
      this.keepOnly(keep)
      this.from(past)
    })
    await this.earlier()
  }

  /** from says where the history of the view comes from. */
  from(past: Past): void {
    this.past = past
    this.loading = undefined
    this.more.value = true
  }

  /** leave shows all that this device has again. */
  async leave(): Promise<void> {
    if (!this.view.peek()) return
    batch(() => {
      this.view.value = undefined
      this.past = undefined
      this.loading = undefined
      this.keepOnly(new Set(this.all().filter((item) => item.kind === 'text' && !item.final).map((item) => item.key)))
    })
    await this.load()
  }

  private keepOnly(keep: ReadonlySet<string>): void {
    for (const key of [...this.items.keys()]) if (!keep.has(key)) this.items.delete(key)
    this.order.value = this.order.peek().filter((key) => keep.has(key))
    this.more.value = false
  }

  /** find shows an item, wherever this device has it; false: it has it not. */
  async find(key: string): Promise<boolean> {
    if (this.at(key)) return true
    const item = await this.history.get(key)
    if (!item) return false
    if (item.n <= this.floor) await this.leave()
    while (!this.at(key) && this.more.peek()) await this.earlier()
    return this.at(key) !== undefined
  }

  /** earlier shows what stands before the first item on the screen. */
  earlier(): Promise<void> {
    if (this.loading) return this.loading
    const loading = (this.deeper ? this.readEarlier() : this.readPast()).finally(() => this.loading === loading && (this.loading = undefined))
    return (this.loading = loading)
  }

  private async readEarlier(): Promise<void> {
    const first = this.all().find((item) => item.n > this.floor)
    if (!first) return
    const view = this.view.peek()
    const found = await this.history.before(first.n, PAGE)
    if (this.view.peek() !== view) return
    this.prepend(found.filter((item) => item.n > this.floor))
    this.noteMore(found)
  }

  private async readPast(): Promise<void> {
    const { past } = this
    const found = await past?.()
    if (this.past !== past) return // another one is shown meanwhile
    if (found) this.prepend(found)
    else this.past = undefined
    this.more.value = this.past !== undefined
  }

  private prepend(found: readonly Item[]): void {
    const fresh = found.filter((item) => !this.items.has(item.key))
    batch(() => {
      for (const item of fresh) this.items.set(item.key, signal(item))
      this.order.value = [...fresh.map((item) => item.key), ...this.order.peek()]
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
    batch(() => {
      this.view.value = undefined
      this.past = undefined
      this.loading = undefined
      this.deeper = false
      this.keepOnly(keep)
    })
    await this.history.clear(keep)
  }
}
