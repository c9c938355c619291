import type { Past } from '../talk/conversation'
import { keys, type Item, type ToolItem } from '../talk/item'
import type { Calls } from './calls'

/** A message of a session, as the gateway keeps it. */
export interface Message {
  id: number
  role: string
  text: string
  at: string
  tool?: string
}

export interface Page {
  messages: Message[]
  cursor?: string
}

/** So many messages are asked for at a time. */
const PAGE = 50
/** Fewer rows than these do not fill a screen, so that nobody could scroll to more. */
const FEW = 20

export function ask(calls: Calls, session: string, cursor?: string): Promise<Page> {
  return calls.ask<Page>('sessions.history', { id: session, limit: PAGE, ...(cursor && { cursor }) })
}

/** pastOf reads the history of a session up to its message `last`, from its end. begun is its first page, where that is at hand. */
export function pastOf(calls: Calls, session: string, last: number, begun?: Page): Past {
  let ready = begun
  let next: string | undefined
  let over = false
  let found: Message[] = [] // read and not shown yet
  return async () => {
    if (over) return undefined
    let rows: Item[] = []
    // What comes meanwhile moves the pages, so a message may be on two of them. It is shown once, for it has one key.
    while (!over && rows.length < FEW) {
      const page: Page = ready ?? (await ask(calls, session, next))
      ready = undefined
      next = page.cursor
      over = !next
      found.unshift(...page.messages.filter(({ id }) => id <= last && !found.some((other) => other.id === id)))
      rows = items(found)
    }
    found = []
    return rows
  }
}

/** items are messages as they are shown: what tools answered one after the other is one row. */
function items(messages: readonly Message[]): Item[] {
  const rows: Item[] = []
  for (const { id, role, text, at, tool } of messages) {
    const base = { key: keys.past(id), id: String(id), n: 0, at: Date.parse(at) || 0, replyTo: '', past: true }
    const before = rows.at(-1)
    if (role !== 'tool') rows.push({ ...base, kind: 'text', mine: role === 'user', text, final: true })
    else {
      const step = { id: String(id), name: tool || 'tool', state: 'done', title: '', text: output(text) }
      if (before?.kind === 'tools') before.steps.push(step)
      else rows.push({ ...base, kind: 'tools', mine: false, steps: [step] } satisfies ToolItem)
    }
  }
  return rows
}

/** output is what a tool printed, where it says so. */
function output(text: string): string {
  try {
    const said = JSON.parse(text) as { output?: unknown } | null
    return typeof said?.output === 'string' ? said.output : text
  } catch {
    return text
  }
}
