/** So many rows more are drawn when the person scrolls to an edge of what is drawn. */
export const STEP = 20
/** So many rows are in the page at most, or a few more: a long history costs no more than a short one. */
export const MOST = 120
/** So many are drawn at once when the page opens: what a screen shows. */
export const FIRST = 16

/** Which part of the conversation is in the page, by the keys of its first and last row. */
export interface Part {
  /** Undefined: the newest few. */
  readonly first?: string
  /** Undefined: it goes to the end, also when something comes. */
  readonly last?: string
}

/** bounds finds a part in the conversation, the end not included. A row that is gone is no bound. */
export function bounds(order: readonly string[], { first, last }: Part): [from: number, to: number] {
  const end = last === undefined ? -1 : order.lastIndexOf(last)
  const to = end < 0 ? order.length : end + 1
  const from = first === undefined ? -1 : order.lastIndexOf(first, to - 1)
  return [from < 0 ? Math.max(0, to - (first === undefined ? FIRST : MOST)) : from, to]
}

function part(order: readonly string[], from: number, to: number): Part {
  return { first: order[from], last: to < order.length ? order[to - 1] : undefined }
}

/** up shows older rows, and leaves out as many of the newest as are too many. */
export function up(order: readonly string[], shown: Part): Part {
  const [from, to] = bounds(order, shown)
  const next = Math.max(0, from - STEP)
  return part(order, next, Math.min(to, next + MOST))
}

/** down shows newer rows. */
export function down(order: readonly string[], shown: Part): Part {
  const [from, to] = bounds(order, shown)
  const next = Math.min(order.length, to + STEP)
  return part(order, Math.max(from, next - MOST), next)
}

/** around shows the rows about one, wherever it is. */
export function around(order: readonly string[], key: string): Part {
  const to = Math.min(order.length, order.indexOf(key) + 1 + MOST / 2)
  return part(order, Math.max(0, to - MOST), to)
}

/** end shows the newest rows. */
export function end(order: readonly string[]): Part {
  return part(order, Math.max(0, order.length - MOST), order.length)
}
