/**
 * readLocal reads a value of localStorage. It returns an empty string if the browser forbids that.
 */
export function readLocal(name: string): string {
  try {
    return localStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}

/** writeLocal stores a value. An empty one deletes it. */
export function writeLocal(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value)
    else localStorage.removeItem(name)
  } catch {
    // Private windows may forbid it. Then the value lasts until the page is closed.
  }
}
