/** fill puts values into the {names} of a text. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
}

/** form finds the text of a table that fits the number n: nameOne, nameFew, nameMany or nameOther. */
export function form(table: Record<string, string>, language: string, name: string, n: number): string {
  const kind = new Intl.PluralRules(language).select(n)
  return fill(table[name + kind[0]!.toUpperCase() + kind.slice(1)] ?? table[name + 'Other']!, { n })
}
