import { batch, signal, type Signal } from '@preact/signals'
import type { History } from '../storage/history'
import type { NewItem, Item } from './item'

/** The number of items that are read from storage at a time. */
const PAGE_SIZE = 60

/** The duration of an animation frame, in milliseconds. */
const FRAME_MS = 16

/** View is a Hermes session that is shown instead of everything this device has. */
export interface View {
  session: string
  title: string
  /**
   * Items of this device with a higher position arrived after the session was opened. They are
   * shown below its history.
   */
  floor: number
  /**
   * The newest message of the session's history at that time. Later messages reach this device as
   * events.
   */
  last: number
}

/** LoadOlder returns older items of a view's history with each call, and undefined at its end. */
export type LoadOlder = () => Promise<Item[] | undefined>

/**
 * isUnfinished reports whether an item is still open, so that no session's history can contain it.
 */
function isUnfinished(item: Item): boolean {
  if (item.kind === 'card') return !item.done && item.until > Date.now()
  return item.progress === 'waiting' || item.progress === 'queued' || item.progress === 'failed' || (item.kind === 'text' && !item.final)
}

/**
 * Conversation is what is on the screen: the order of the items and a signal for each, so that a
 * change redraws only one message. Edits of a streamed reply are shown at most once per animation
 * frame. put shows a final item immediately and returns when it is stored.
 */
export class Conversation {
  readonly order = signal<readonly string[]>([])
  /** There are older items, in storage or at the gateway. */
  readonly hasMore = signal(false)
  /** undefined: everything this device has is shown. */
  readonly view = signal<View | undefined>(undefined)
  private loadOlder: LoadOlder | undefined
  private moreOnDisk = false // storage has older items to show
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

  /** load shows the newest stored items. */
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

  /** updateHasMore computes hasMore after a page of items was read. */
  private updateHasMore(found: readonly Item[]): void {
    this.moreOnDisk = found.length === PAGE_SIZE && found[0]!.n > this.floor
    this.hasMore.value = this.moreOnDisk || this.loadOlder !== undefined
  }

  /** openView shows a session instead of the current items, which stay in storage. */
  async openView(view: Omit<View, 'floor'>, past: LoadOlder): Promise<void> {
    const keep = new Set(this.shownItems().filter(isUnfinished).map((item) => item.key))
    batch(() => {
      this.view.value = { ...view, floor: this.nextPosition - 1 }
      this.keepOnly(keep)
      this.setHistory(past)
    })
    await this.loadEarlier()
  }

  /** setHistory sets the source of the view's history. */
  setHistory(past: LoadOlder): void {
    this.loadOlder = past
    this.loading = undefined
    this.hasMore.value = true
  }

  /** closeView shows everything this device has again. */
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

  /**
   * reveal shows an item of this device, wherever it is. It returns false if the device doesn't
   * have it.
   */
  async reveal(key: string): Promise<boolean> {
    if (this.signalFor(key)) return true
    const item = await this.history.get(key)
    if (!item) return false
    if (item.n <= this.floor) await this.closeView()
    while (!this.signalFor(key) && this.hasMore.peek()) await this.loadEarlier()
    return this.signalFor(key) !== undefined
  }

  /** loadEarlier shows the items before the first one on the screen. */
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
    if (this.loadOlder !== loadOlder) return // another view was opened meanwhile
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

  /** withPosition gives an item its position and time, or keeps those of a known item. */
  withPosition(fresh: NewItem): Item {
    const known = this.get(fresh.key)
    return { ...fresh, n: fresh.n ?? known?.n ?? this.nextPosition++, at: fresh.at ?? known?.at ?? Date.now() } as Item
  }

  /** show puts an item on the screen without storing it. */
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
   * showSoon shows the newest version of an item in the next animation frame. If drawing takes
   * long, it then pauses for as long, so that the page stays responsive.
   */
  showSoon(fresh: NewItem): void {
    this.updates.set(fresh.key, fresh)
    if (this.frameRequested) return
    this.frameRequested = true
    if (document.visibilityState === 'visible') requestAnimationFrame(() => this.showUpdates())
    else setTimeout(() => this.showUpdates(), 500) // a hidden page has no animation frames
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
      const took = performance.now() - began // including layout and paint
      if (took < FRAME_MS) after()
      else setTimeout(after, Math.min(took, 200))
    })
  }

  /**
   * put shows an item and stores it. An item that is stored but not on the screen keeps its
   * position.
   */
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

  /** change updates a known item on the screen and in storage. */
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

  /** shownItems returns the items on the screen. */
  shownItems(): Item[] {
    return this.order.peek().flatMap((key) => this.get(key) ?? [])
  }

  /** clear deletes everything except items that are being sent or written. */
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
