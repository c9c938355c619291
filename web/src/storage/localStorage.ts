/** read gives a value of localStorage; a browser that refuses it has none. */
export function readLocal(name: string): string {
  try {
    return localStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}

/** write keeps a value, or forgets it where it is empty. */
export function writeLocal(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value)
    else localStorage.removeItem(name)
  } catch {
    // Private windows may refuse; then it holds for this page only.
  }
}
