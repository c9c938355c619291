/** newID returns a unique id. A page on plain HTTP has getRandomValues but no randomUUID. */
export function newID(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
