import { batch, signal, type Signal } from '@preact/signals'
import type { History } from '../storage/history'
import type { NewItem, Item } from './item'

/** So many items are read from the disk at a time. */
const PAGE_SIZE = 60

/** A frame of the screen, in milliseconds. */
const FRAME_MS = 16

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
export type LoadOlder = () => Promise<Item[] | undefined>

/** pending is what has no end yet, so that no session's history can have it. */
function isUnfinished(item: Item): boolean {
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
  readonly hasMore = signal(false)
  /** Undefined: all that this device has is shown. */
  readonly view = signal<View | undefined>(undefined)
  private loadOlder: LoadOlder | undefined
  private moreOnDisk = false // the disk has older items that are to be shown
  private readonly items = new Map<string, Signal<Item>>()
  private readonly updates = new Map<string, NewItem>()
  private frameRequested = false
  private nextPosition = 1
  private loading: Promise<void> | undefined

  constructor(readonly history: History) {}

  signalFor(key: string): Signal<Item> | undefined {
    return this.items.get(key)
  }

  get(key: string): Item | undefined {
    return this.items.get(key)?.peek()
  }

  /** load shows the newest of what is kept. */
  async load(): Promise<void> {
    const found = await this.history.before(Infinity, PAGE_SIZE)
    const floor = this.floor
    this.nextPosition = Math.max(this.nextPosition, (found.at(-1)?.n ?? 0) + 1, floor + 1)
    const shown = found.filter((item) => item.n > floor || isUnfinished(item))
    batch(() => {
      for (const item of shown) if (!this.items.has(item.key)) this.items.set(item.key, signal(item))
      this.order.value = [...shown.map((item) => item.key), ...this.order.peek().filter((key) => !shown.some((item) => item.key === key))]
      this.updateHasMore(found)
    })
  }

  private get floor(): number {
    return this.view.peek()?.floor ?? 0
  }

  /** noteMore notes whether there is anything before what was just read. */
  private updateHasMore(found: readonly Item[]): void {
    this.moreOnDisk = found.length === PAGE_SIZE && found[0]!.n > this.floor
    this.hasMore.value = this.moreOnDisk || this.loadOlder !== undefined
  }

  /** look shows a session in place of what is on the screen, which stays on the disk. */
  async openView(view: Omit<View, 'floor'>, past: LoadOlder): Promise<void> {
    const keep = new Set(this.shownItems().filter(isUnfinished).map((item) => item.key))
    batch(() => {
      this.view.value = { ...view, floor: this.nextPosition - 1 }
      this.keepOnly(keep)
      this.setHistory(past)
    })
    await this.loadEarlier()
  }

  /** from says where the history of the view comes from. */
  setHistory(past: LoadOlder): void {
    this.loadOlder = past
    this.loading = undefined
    this.hasMore.value = true
  }

  /** leave shows all that this device has again. */
  async closeView(): Promise<void> {
    if (!this.view.peek()) return
    batch(() => {
      this.view.value = undefined
      this.loadOlder = undefined
      this.loading = undefined
      this.keepOnly(new Set(this.shownItems().filter((item) => item.kind === 'text' && !item.final).map((item) => item.key)))
    })
    await this.load()
  }

  private keepOnly(keep: ReadonlySet<string>): void {
    for (const key of [...this.items.keys()]) if (!keep.has(key)) this.items.delete(key)
    this.order.value = this.order.peek().filter((key) => keep.has(key))
    this.hasMore.value = false
  }

  /** find shows an item, wherever this device has it; false: it has it not. */
  async reveal(key: string): Promise<boolean> {
    if (this.signalFor(key)) return true
    const item = await this.history.get(key)
    if (!item) return false
    if (item.n <= this.floor) await this.closeView()
    while (!this.signalFor(key) && this.hasMore.peek()) await this.loadEarlier()
    return this.signalFor(key) !== undefined
  }

  /** earlier shows what stands before the first item on the screen. */
  loadEarlier(): Promise<void> {
    if (this.loading) return this.loading
    const loading = (this.moreOnDisk ? this.loadFromDisk() : this.loadFromGateway()).finally(() => this.loading === loading && (this.loading = undefined))
    return (this.loading = loading)
  }

  private async loadFromDisk(): Promise<void> {
    const first = this.shownItems().find((item) => item.n > this.floor)
    if (!first) return
    const view = this.view.peek()
    const found = await this.history.before(first.n, PAGE_SIZE)
    if (this.view.peek() !== view) return
    this.prepend(found.filter((item) => item.n > this.floor))
    this.updateHasMore(found)
  }

  private async loadFromGateway(): Promise<void> {
    const { loadOlder } = this
    const found = await loadOlder?.()
    if (this.loadOlder !== loadOlder) return // another one is shown meanwhile
    if (found) this.prepend(found)
    else this.loadOlder = undefined
    this.hasMore.value = this.loadOlder !== undefined
  }

  private prepend(found: readonly Item[]): void {
    const fresh = found.filter((item) => !this.items.has(item.key))
    batch(() => {
      for (const item of fresh) this.items.set(item.key, signal(item))
      this.order.value = [...fresh.map((item) => item.key), ...this.order.peek()]
    })
  }

  /** place gives an item its number and time, those it had where it is known. */
  withPosition(fresh: NewItem): Item {
    const known = this.get(fresh.key)
    return { ...fresh, n: fresh.n ?? known?.n ?? this.nextPosition++, at: fresh.at ?? known?.at ?? Date.now() } as Item
  }

  /** show puts an item on the screen, and not on the disk. */
  show(fresh: NewItem): Item {
    this.updates.delete(fresh.key)
    const item = this.withPosition(fresh)
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
  showSoon(fresh: NewItem): void {
    this.updates.set(fresh.key, fresh)
    if (this.frameRequested) return
    this.frameRequested = true
    if (document.visibilityState === 'visible') requestAnimationFrame(() => this.showUpdates())
    else setTimeout(() => this.showUpdates(), 500) // a hidden page has no frames
  }

  private showUpdates(): void {
    const began = performance.now()
    batch(() => [...this.updates.values()].forEach((step) => this.show(step)))
    const after = () => {
      this.frameRequested = false
      const [next] = this.updates.values()
      if (next) this.showSoon(next)
    }
    setTimeout(() => {
      const took = performance.now() - began // with layout and paint
      if (took < FRAME_MS) after()
      else setTimeout(after, Math.min(took, 200))
    })
  }

  /** put shows an item and keeps it. One that was kept before and is not on the screen keeps its place. */
  async put(fresh: NewItem, blob?: Blob): Promise<Item> {
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
    await this.put({ ...now, ...(typeof changes === 'function' ? changes(now as T) : changes) } as NewItem)
  }

  async remove(key: string): Promise<void> {
    this.order.value = this.order.peek().filter((other) => other !== key)
    this.items.delete(key)
    await this.history.remove(key)
  }

  /** all gives the items on the screen. */
  shownItems(): Item[] {
    return this.order.peek().flatMap((key) => this.get(key) ?? [])
  }

  /** clear forgets everything except what is still to be sent or is being written. */
  async clear(): Promise<void> {
    const keep = new Set(this.shownItems().filter((item) => item.progress === 'waiting' || (item.kind === 'text' && !item.final)).map((item) => item.key))
    batch(() => {
      this.view.value = undefined
      this.loadOlder = undefined
      this.loading = undefined
      this.moreOnDisk = false
      this.keepOnly(keep)
    })
    await this.history.clear(keep)
  }
}
