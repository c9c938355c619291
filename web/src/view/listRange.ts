/** The number of rows that scrolling to an edge adds. */
export const GROW_BY = 20
/**
 * The maximum number of rows in the page, within a few, so that a long history costs no more than a
 * short one.
 */
export const MAX_ROWS = 120
/** The number of rows in the first paint: about a screen. */
export const FIRST_ROWS = 16

/**
 * Range is the part of the conversation that is in the page, by the keys of its first and last row.
 */
export interface Range {
  /** undefined: the newest few. */
  readonly first?: string
  /** undefined: it ends with the newest row, including later ones. */
  readonly last?: string
}

/** bounds returns the indexes of a range, the end exclusive. It ignores keys that are gone. */
export function bounds(order: readonly string[], { first, last }: Range): [from: number, to: number] {
  const end = last === undefined ? -1 : order.lastIndexOf(last)
  const to = end < 0 ? order.length : end + 1
  const from = first === undefined ? -1 : order.lastIndexOf(first, to - 1)
  return [from < 0 ? Math.max(0, to - (first === undefined ? FIRST_ROWS : MAX_ROWS)) : from, to]
}

function range(order: readonly string[], from: number, to: number): Range {
  return { first: order[from], last: to < order.length ? order[to - 1] : undefined }
}

/** growUp adds older rows and drops newer ones over the maximum. */
export function growUp(order: readonly string[], shown: Range): Range {
  const [from, to] = bounds(order, shown)
  const next = Math.max(0, from - GROW_BY)
  return range(order, next, Math.min(to, next + MAX_ROWS))
}

/** growDown adds newer rows. */
export function growDown(order: readonly string[], shown: Range): Range {
  const [from, to] = bounds(order, shown)
  const next = Math.min(order.length, to + GROW_BY)
  return range(order, Math.max(from, next - MAX_ROWS), next)
}

/** centeredOn returns the rows around a key. */
export function centeredOn(order: readonly string[], key: string): Range {
  const to = Math.min(order.length, order.indexOf(key) + 1 + MAX_ROWS / 2)
  return range(order, Math.max(0, to - MAX_ROWS), to)
}

/** newest returns the newest rows. */
export function newest(order: readonly string[]): Range {
  return range(order, Math.max(0, order.length - MAX_ROWS), order.length)
}
