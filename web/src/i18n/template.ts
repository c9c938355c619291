/** Plural has a text for each plural category of its language. `other` stands in for a missing one. */
export type Plural = { other: string } & Partial<Record<Intl.LDMLPluralRule, string>>

/** Translation is a table in another language: the same keys, with that language's plural forms. */
export type Translation<Table> = { [K in keyof Table]: Table[K] extends string ? string : Plural }

/** fillTemplate replaces the {placeholders} of a text. */
export function fillTemplate(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
}

/** pluralText returns the plural form that the language uses for n. */
export function pluralText(forms: Plural, language: string, n: number): string {
  return fillTemplate(forms[new Intl.PluralRules(language).select(n)] ?? forms.other, { n })
}
