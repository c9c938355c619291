/** toBase64 encodes bytes in the standard alphabet, with padding. */
export function toBase64(bytes: Uint8Array): string {
  let chars = ''
  // The number of arguments of a call is limited.
  for (let at = 0; at < bytes.length; at += 8192) chars += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(chars)
}

/** fromBase64 accepts both alphabets, with or without padding, and line breaks (doc/protocol.md §5). */
export function fromBase64(text: string): Uint8Array {
  const chars = atob(text.replace(/-/g, '+').replace(/_/g, '/'))
  const bytes = new Uint8Array(chars.length)
  for (let i = 0; i < chars.length; i++) bytes[i] = chars.charCodeAt(i)
  return bytes
}
