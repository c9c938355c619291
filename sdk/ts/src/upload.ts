import { FrameError } from './errors.js'
import { MAX_MEDIA, MIN_CHUNK, type Capabilities, type MediaUp } from './frames.js'

/** Bytes that can be read piece by piece. A Blob or File of a browser is one. */
export interface Source {
  readonly size: number
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> }
}

/** A file to send. */
export interface FileToSend {
  /** It is read part by part until the receipt, so it must stay readable till then. */
  data: Source | Uint8Array | ArrayBuffer
  /** For display; what stands before the last slash is cut. Default: that of a File, else `file`. */
  name?: string
  /** Default: that of a Blob, else found by the server. */
  mime?: string
  /** Default: by mime, else document. */
  kind?: 'image' | 'video' | 'document' | 'audio'
  caption?: string
  /** Called after each part with the bytes handed over so far in this attempt; after a drop it starts over. */
  progress?: (sent: number, total: number) => void
}

/** The most raw bytes in one part. The server would take more (chunk_bytes), but a message waits for the part that is being written, and on a slow link a small part is soon through. */
const PART = 256 << 10

/** Upload is a file going up. */
export class Upload {
  next = 0
  parts = 1
  partSize = PART
  readonly source: Source
  readonly progress: FileToSend['progress']
  /** What every part says. */
  readonly head: MediaUp

  constructor(file: FileToSend, id: string, capabilities: Capabilities) {
    const data = file.data
    this.source = data instanceof Uint8Array || data instanceof ArrayBuffer ? sourceOf(data) : data
    this.progress = file.progress
    const { name, type } = data as { name?: string; type?: string }
    const mime = file.mime ?? type ?? ''
    const major = mime.split('/')[0]!
    this.head = {
      t: 'media', id, kind: file.kind ?? (['image', 'video', 'audio'].includes(major) ? major : 'document'),
      mime: mime || undefined, filename: (file.name ?? name ?? '').replace(/.*[/\\]/s, '') || 'file', caption: file.caption || undefined, part: 0, parts: 1,
    }
    const limit = capabilities.max_media_bytes || MAX_MEDIA
    if (!(this.size > 0)) throw new FrameError('bad_frame', 'the file is empty', id)
    if (this.size > limit) {
      throw new FrameError('too_big', `the file has ${this.size} bytes and the server takes ${limit} at most: make it smaller`, id)
    }
  }

  get size(): number {
    return this.source.size
  }

  /** start lays out the parts by what the server announces; zero means its default. */
  start(c: Capabilities): void {
    let size = Math.min(PART, c.chunk_bytes || PART)
    size = Math.max(size, c.min_chunk_bytes, MIN_CHUNK)
    if (c.max_parts > 0) size = Math.max(size, Math.ceil(this.size / c.max_parts))
    this.partSize = size
    this.parts = Math.max(Math.ceil(this.size / size), 1)
    this.next = 0
  }

  /** read makes the frame of a part. A source that fails or is short ends the file: half of it is worth nothing. */
  async read(part: number): Promise<MediaUp> {
    const at = part * this.partSize
    const want = Math.min(this.partSize, this.size - at)
    const data = new Uint8Array(await this.source.slice(at, at + want).arrayBuffer())
    if (data.length !== want) throw new Error('the file has changed while it was sent')
    // Caption and size once are enough; older servers want the rest in every part.
    return { ...this.head, ...(part ? { caption: undefined } : { size: this.size }), part, parts: this.parts, data }
  }
}

function sourceOf(data: Uint8Array | ArrayBuffer): Source {
  const bytes = new Uint8Array(data) // a copy of a Uint8Array, so that the app may use its own again
  return { size: bytes.length, slice: (start, end) => ({ arrayBuffer: () => Promise.resolve(bytes.slice(start, end).buffer) }) }
}
