/** copyText copies a text. A page on plain HTTP has no clipboard API, so it uses execCommand. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard?.writeText) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // Not allowed here. execCommand may be.
    }
  }
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'hidden'
  field.setAttribute('aria-hidden', 'true')
  const focused = document.activeElement as HTMLElement | null
  document.body.append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  focused?.focus()
  return copied
}
