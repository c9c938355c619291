import { computed, signal } from '@preact/signals'
import { readLocal, writeLocal } from '../storage/localStorage'
import type { admin } from './en/admin'
import type { connect } from './en/connect'
import { page as english } from './en/page'
import { page as russian } from './ru/page'
import { fillTemplate, pluralText, type Plural, type Translation } from './template'

type Messages = typeof english & typeof connect & typeof admin
type KeyOf<Kind> = { [K in keyof Messages]: Messages[K] extends Kind ? K : never }[keyof Messages]
/** Key names a text. */
export type Key = KeyOf<string>
/** CountedKey names a text that depends on a number. */
export type CountedKey = KeyOf<Plural>

export const languages = { en: 'English', ru: 'Русский' } as const
export type Language = keyof typeof languages

const STORAGE_KEY = 'hermes.language'

/** The texts that are loaded. Parts of the page that few users open add theirs with addMessages. */
const tables: Record<Language, Record<string, string | Plural>> = { en: { ...english }, ru: { ...russian } }

/** addMessages loads more texts. Call it before anything that needs them is drawn. */
export function addMessages<Table extends Record<string, string | Plural>>(en: Table, ru: Translation<Table>): void {
  Object.assign(tables.en, en)
  Object.assign(tables.ru, ru)
}

function preferredLanguage(): Language {
  const preferred = [readLocal(STORAGE_KEY), ...(globalThis.navigator?.languages ?? [])].map((tag) => tag.slice(0, 2))
  return (preferred.find((tag) => tag in tables) as Language | undefined) ?? 'en'
}

/** The language of the page. */
export const language = signal<Language>(preferredLanguage())
const messages = computed(() => tables[language.value])

/** The user's regional variant of the page's language, for times and numbers. */
export const locale = computed(() => globalThis.navigator?.languages?.find((tag) => tag.startsWith(language.value)) ?? language.value)

export function chooseLanguage(next: Language): void {
  writeLocal(STORAGE_KEY, next)
  language.value = next
}

/** t returns a text with its {placeholders} filled in. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return fillTemplate(messages.value[key] as string, values)
}

/** templateParts splits a text at its placeholders: every second part is the name of one. */
export function templateParts(key: Key): string[] {
  return (messages.value[key] as string).split(/\{(\w+)\}/)
}

/** count returns a text in the plural form for n. */
export function count(key: CountedKey, n: number): string {
  return pluralText(messages.value[key] as Plural, language.value, n)
}
