import { useEffect, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { announce } from './toast'

/** A slash command of the agent. */
interface Command {
  name: string
  description: string
  args?: string
}

/** What the composer needs of the palette. */
export interface CommandPalette {
  /** The commands that match the text. Empty: the palette is closed. */
  found: readonly Command[]
  active: number
  choose: (at: number) => void
  close: () => void
  /** Returns the text with the command completed. */
  take: (at?: number) => string | undefined
  /** Whether Enter completes the command rather than sends a complete one. */
  completes: boolean
}

/** useCommandPalette offers the agent's commands while the text starts with a slash. */
export function useCommandPalette(client: Client, text: string): CommandPalette {
  const { state, approved, capabilities } = client.status.value
  const [commands, setCommands] = useState<readonly Command[]>([])
  const [active, setActive] = useState(0)
  const [closed, setClosed] = useState('') // closed for this text and its continuations
  const slash = /^\/[^\n]*$/.test(text)
  const asks = slash && state === 'online' && approved && capabilities.call.includes('commands.list')

  // Ask again each time the user starts a command, because the list may change.
  useEffect(() => {
    if (!asks) return
    const end = new AbortController()
    client.device.call<{ commands?: Command[] }>('commands.list', {}, { signal: end.signal }).then(
      (result) => setCommands((result.commands ?? []).filter(({ name }) => typeof name === 'string' && name.startsWith('/'))),
      () => {}, // no list: the user can still send what is typed
    )
    return () => end.abort()
  }, [client, asks])
  useEffect(() => setActive(0), [text])
  useEffect(() => {
    if (closed && !text.startsWith(closed)) setClosed('')
  }, [text, closed])

  const found = asks && !(closed && text.startsWith(closed)) ? matching(commands, text) : []
  const at = Math.min(active, found.length - 1)
  const chosen = found[at]
  return {
    found,
    active: at,
    choose: setActive,
    close: () => setClosed(text),
    take: (n = at) => {
      const command = found[n]
      if (!command) return undefined
      const taken = command.name + (command.args ? ' ' : '')
      setClosed(taken)
      return taken
    },
    completes: chosen !== undefined && chosen.name !== text.trimEnd(),
  }
}

/**
 * matching returns the commands that start with the text, then those with a matching word or
 * description.
 */
function matching(commands: readonly Command[], text: string): Command[] {
  const typed = text.toLowerCase()
  const word = typed.slice(1)
  const first = commands.filter(({ name }) => name.toLowerCase().startsWith(typed))
  if (word.length < 2) return first
  const more = commands.filter((command) => !first.includes(command) && (command.name.toLowerCase().split(/[ /]/).some((part) => part.startsWith(word)) || command.description?.toLowerCase().includes(word)))
  return [...first, ...more]
}

const optionID = (at: number) => 'command-' + at

/**
 * comboboxProps connects the text field to the open list. A multi-line field can't be a combobox,
 * so the number of commands is announced as well.
 */
export function comboboxProps({ active }: CommandPalette) {
  return { 'aria-haspopup': 'listbox', 'aria-autocomplete': 'list', 'aria-controls': 'commands', 'aria-activedescendant': optionID(active) } as const
}

/**
 * CommandList is the list above the composer. The focus stays in the field, which refers to the
 * active command.
 */
export function CommandList({ palette, take }: { palette: CommandPalette; take: (at: number) => void }) {
  const { found, active } = palette
  useEffect(() => document.getElementById(optionID(active))?.scrollIntoView({ block: 'nearest' }), [active, found.length])
  useEffect(() => {
    if (found.length > 0) announce(t('commandsFound', { count: String(found.length) }))
  }, [found.length])
  if (found.length === 0) return null
  return (
    <ul class="command-palette" id="commands" role="listbox" aria-label={t('commands')} onMouseDown={(e) => e.preventDefault()}>
      {found.map(({ name, description, args }, at) => (
        <li key={name} id={optionID(at)} role="option" aria-selected={at === active} onMouseMove={() => at !== active && palette.choose(at)} onClick={() => take(at)}>
          <b dir="ltr">{name}{args && <i> {args}</i>}</b> <span dir="auto">{description}</span>
        </li>
      ))}
    </ul>
  )
}
