import { computed, signal } from '@preact/signals'
import { read, write } from '../keep/profile'
import { en } from './en'
import { fill, form } from './fill'
import { ru } from './ru'

export type Key = keyof typeof en
/** Words that depend on a number: name stands for nameOne, nameFew, nameMany and nameOther. */
export type Counted = { [K in Key]: K extends `${infer Name}Other` ? Name : never }[Key]
export type Words = Record<Key, string>

export const languages = { en: 'English', ru: 'Русский' } as const
export type Language = keyof typeof languages
const tables: Record<Language, Words> = { en, ru }

const CHOSEN = 'hermes.language'

function preferred(): Language {
  const wanted = [read(CHOSEN), ...(globalThis.navigator?.languages ?? [])].map((tag) => tag.slice(0, 2))
  return (wanted.find((tag) => tag in tables) as Language | undefined) ?? 'en'
}

/** What the person reads. */
export const language = signal<Language>(preferred())
const table = computed(() => tables[language.value])

/** The person's own way to write times and numbers, in the language of the page. */
export const locale = computed(() => globalThis.navigator?.languages?.find((tag) => tag.startsWith(language.value)) ?? language.value)

export function chooseLanguage(next: Language): void {
  write(CHOSEN, next)
  language.value = next
}

/** t gives a text, with {names} filled in. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return fill(table.value[key], values)
}

/** parts gives a text in pieces: every second one is the name of a blank. */
export function parts(key: Key): string[] {
  return table.value[key].split(/\{(\w+)\}/)
}

/** count gives the form of a text that fits the number n. */
export function count(name: Counted, n: number): string {
  return form(table.value, language.value, name, n)
}
