import { join } from './assemble.js'
import { DownloadError } from './errors.js'
import type { FileEvent } from './events.js'

/** Options of a download. */
export interface DownloadOptions {
  signal?: AbortSignal
  /** Called with the bytes so far. total is 0 where unknown. */
  progress?: (received: number, total: number) => void
}

/** The parts of the device that downloads use. */
export interface Fetcher {
  fetch: typeof fetch
  /** The address of the server, to resolve relative links. */
  base: string
  /** Waits before attempt n. It throws when the device was closed or the signal aborted. */
  pause(n: number, signal?: AbortSignal): Promise<void>
}

/**
 * fetchFile writes a file piece by piece, from data or from the link. After a broken connection it continues at the same place
 * until the signal aborts. It returns the number of bytes.
 */
export async function fetchFile(
  by: Fetcher,
  file: FileEvent,
  write: (bytes: Uint8Array) => void | Promise<void>,
  { signal, progress }: DownloadOptions,
): Promise<number> {
  if (file.error) throw file.error
  let total = 0
  const take = async (bytes: Uint8Array) => {
    try {
      await write(bytes)
      total += bytes.length
      progress?.(total, file.size)
    } catch (error) {
      throw new WriteError(error)
    }
  }
  if (!file.url) {
    const data = file.data ?? new Uint8Array(0)
    await write(data)
    progress?.(data.length, data.length)
    return data.length
  }
  const url = fileURL(file.url, by.base)
  for (let attempt = 0; ; attempt++) {
    const before = total
    try {
      await fetchFrom(by, url, total, take, signal)
      if (!file.size || total === file.size) return total
      if (total > file.size) throw new DownloadError(`the file has ${total} bytes instead of ${file.size}`)
    } catch (error) {
      if (error instanceof WriteError) throw error.cause
      if (error instanceof DownloadError) throw error
    }
    if (total > before) attempt = 0
    await by.pause(attempt, signal)
  }
}

/** fetchWhole fetches a file into memory. */
export async function fetchWhole(by: Fetcher, file: FileEvent, options: DownloadOptions): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  const bytes = await fetchFile(by, file, (part) => void parts.push(part), options)
  return join(parts, bytes)
}

/** WriteError marks an error of the app, as opposed to one of the network. */
class WriteError extends Error {
  constructor(override readonly cause: unknown) {
    super()
  }
}

/** fileURL returns the absolute form of a link. Only http and https are allowed. */
function fileURL(link: string, base: string): string {
  let url: URL
  try {
    url = new URL(link, base.replace(/^ws/, 'http'))
  } catch {
    throw new DownloadError('the link is not an address')
  }
  if (!/^https?:$/.test(url.protocol)) throw new DownloadError('the link is not a web address')
  return url.href
}

/** fetchFrom fetches the file from an offset on. */
async function fetchFrom(by: Fetcher, url: string, from: number, take: (bytes: Uint8Array) => Promise<void>, signal?: AbortSignal): Promise<void> {
  const init: RequestInit = { credentials: 'omit', headers: from > 0 ? { Range: `bytes=${from}-` } : {} }
  if (signal) init.signal = signal
  const response = await by.fetch(url, init)
  const { status } = response
  if (status === 429 || status >= 500) throw new Error(`HTTP ${status}`)
  if (status === 403 || status === 410) throw new DownloadError('the link expired or is not for this device', status)
  if (status !== 200 && status !== 206) throw new DownloadError(response.statusText.toLowerCase() || 'could not fetch the file', status)
  // A page of another host may not see the range; a server sends the requested one.
  const range = response.headers.get('Content-Range') ?? `bytes ${from}-`
  if (status === 206 && !range.startsWith(`bytes ${from}-`)) throw new DownloadError('the server sent another part of the file')
  let skip = status === 200 ? from : 0 // the server sends the whole file
  const piece = async (bytes: Uint8Array) => {
    const rest = bytes.subarray(Math.min(skip, bytes.length))
    skip -= bytes.length - rest.length
    if (rest.length > 0) await take(rest)
  }
  const reader = response.body?.getReader?.()
  if (!reader) return piece(new Uint8Array(await response.arrayBuffer())) // React Native has no streams
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      await piece(value)
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}
