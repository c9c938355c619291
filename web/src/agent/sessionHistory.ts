import type { LoadOlder } from '../conversation/conversation'
import { keys, type Item, type ToolItem } from '../conversation/item'
import type { Calls } from './calls'

/** A message of a session, as the gateway stores it. */
export interface HistoryMessage {
  id: number
  role: string
  text: string
  at: string
  tool?: string
}

export interface HistoryPage {
  messages: HistoryMessage[]
  cursor?: string
}

/** The number of messages in a request. */
const PAGE_SIZE = 50
/**
 * Fewer rows than these may not fill the screen, and then the user couldn't scroll to load more.
 */
const MIN_ROWS = 20

export function fetchPage(calls: Calls, session: string, cursor?: string): Promise<HistoryPage> {
  return calls.call<HistoryPage>('sessions.history', { id: session, limit: PAGE_SIZE, ...(cursor && { cursor }) })
}

/**
 * sessionHistory reads the history of a session backwards from its message `last`. `begun` is its
 * first page, if it is already loaded.
 */
export function sessionHistory(calls: Calls, session: string, last: number, begun?: HistoryPage): LoadOlder {
  let ready = begun
  let next: string | undefined
  let over = false
  let found: HistoryMessage[] = [] // read and not shown yet
  return async () => {
    if (over) return undefined
    let rows: Item[] = []
    // New messages shift the pages, so a message can be on two of them. Its key makes it appear
    // once.
    while (!over && rows.length < MIN_ROWS) {
      const page: HistoryPage = ready ?? (await fetchPage(calls, session, next))
      ready = undefined
      next = page.cursor
      over = !next
      found.unshift(...page.messages.filter(({ id }) => id <= last && !found.some((other) => other.id === id)))
      rows = toItems(found)
    }
    found = []
    return rows
  }
}

/** toItems converts messages to items. Consecutive tool outputs become one item. */
function toItems(messages: readonly HistoryMessage[]): Item[] {
  const rows: Item[] = []
  for (const { id, role, text, at, tool } of messages) {
    const base = { key: keys.history(id), id: String(id), n: 0, at: Date.parse(at) || 0, replyTo: '', past: true }
    const before = rows.at(-1)
    if (role !== 'tool') rows.push({ ...base, kind: 'text', mine: role === 'user', text, final: true })
    else {
      const step = { id: String(id), name: tool || 'tool', state: 'done', title: '', text: toolOutput(text) }
      if (before?.kind === 'tools') before.steps.push(step)
      else rows.push({ ...base, kind: 'tools', mine: false, steps: [step] } satisfies ToolItem)
    }
  }
  return rows
}

/** toolOutput extracts a tool's output from its JSON. */
function toolOutput(text: string): string {
  try {
    const said = JSON.parse(text) as { output?: unknown } | null
    return typeof said?.output === 'string' ? said.output : text
  } catch {
    return text
  }
}
