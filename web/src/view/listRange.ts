/** So many rows more are drawn when the person scrolls to an edge of what is drawn. */
export const GROW_BY = 20
/** So many rows are in the page at most, or a few more: a long history costs no more than a short one. */
export const MAX_ROWS = 120
/** So many are drawn at once when the page opens: what a screen shows. */
export const FIRST_ROWS = 16

/** Which part of the conversation is in the page, by the keys of its first and last row. */
export interface Range {
  /** Undefined: the newest few. */
  readonly first?: string
  /** Undefined: it goes to the end, also when something comes. */
  readonly last?: string
}

/** bounds finds a part in the conversation, the end not included. A row that is gone is no bound. */
export function bounds(order: readonly string[], { first, last }: Range): [from: number, to: number] {
  const end = last === undefined ? -1 : order.lastIndexOf(last)
  const to = end < 0 ? order.length : end + 1
  const from = first === undefined ? -1 : order.lastIndexOf(first, to - 1)
  return [from < 0 ? Math.max(0, to - (first === undefined ? FIRST_ROWS : MAX_ROWS)) : from, to]
}

function range(order: readonly string[], from: number, to: number): Range {
  return { first: order[from], last: to < order.length ? order[to - 1] : undefined }
}

/** up shows older rows, and leaves out as many of the newest as are too many. */
export function growUp(order: readonly string[], shown: Range): Range {
  const [from, to] = bounds(order, shown)
  const next = Math.max(0, from - GROW_BY)
  return range(order, next, Math.min(to, next + MAX_ROWS))
}

/** down shows newer rows. */
export function growDown(order: readonly string[], shown: Range): Range {
  const [from, to] = bounds(order, shown)
  const next = Math.min(order.length, to + GROW_BY)
  return range(order, Math.max(from, next - MAX_ROWS), next)
}

/** around shows the rows about one, wherever it is. */
export function centeredOn(order: readonly string[], key: string): Range {
  const to = Math.min(order.length, order.indexOf(key) + 1 + MAX_ROWS / 2)
  return range(order, Math.max(0, to - MAX_ROWS), to)
}

/** end shows the newest rows. */
export function newest(order: readonly string[]): Range {
  return range(order, Math.max(0, order.length - MAX_ROWS), order.length)
}
