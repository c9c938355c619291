import { FrameError } from './errors.js'
import { MAX_MEDIA, MIN_CHUNK, type Capabilities, type MediaUp } from './frames.js'

/** Bytes that can be read piece by piece, such as a Blob or File of a browser. */
export interface Source {
  readonly size: number
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> }
}

/** A file to send. */
export interface FileToSend {
  /** The device reads it part by part, so it must stay readable until the receipt. */
  data: Source | Uint8Array | ArrayBuffer
  /** For display; only the base name counts. Default: that of a File, otherwise `file`. */
  name?: string
  /** Default: that of a Blob, otherwise the server detects it. */
  mime?: string
  /** Default: by mime, otherwise document. */
  kind?: 'image' | 'video' | 'document' | 'audio'
  caption?: string
  /** Called after each part with the bytes sent so far in this attempt. It starts over after a reconnect. */
  progress?: (sent: number, total: number) => void
}

/** The preferred raw bytes of a part. The server allows more (chunk_bytes), but a message waits for the part under way, and a small part is through soon even on a slow connection. */
const PART = 256 << 10

/** Upload is a file on its way to the server. */
export class Upload {
  next = 0
  parts = 1
  partSize = PART
  readonly source: Source
  readonly progress: FileToSend['progress']
  /** The fields of every part. */
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
      throw new FrameError('too_big', `the file has ${this.size} bytes, and the server accepts at most ${limit}: make it smaller`, id)
    }
  }

  get size(): number {
    return this.source.size
  }

  /** start plans the parts within the limits that the server announced; zero means its default. */
  start(c: Capabilities): void {
    let size = Math.min(PART, c.chunk_bytes || PART)
    size = Math.max(size, c.min_chunk_bytes, MIN_CHUNK)
    if (c.max_parts > 0) size = Math.max(size, Math.ceil(this.size / c.max_parts))
    this.partSize = size
    this.parts = Math.max(Math.ceil(this.size / size), 1)
    this.next = 0
  }

  /** read returns the frame of a part. A source that fails or is too short ends the file. */
  async read(part: number): Promise<MediaUp> {
    const at = part * this.partSize
    const want = Math.min(this.partSize, this.size - at)
    const data = new Uint8Array(await this.source.slice(at, at + want).arrayBuffer())
    if (data.length !== want) throw new Error('the file changed during the upload')
    // The first part is enough for caption and size; older servers want the rest in every part.
    return { ...this.head, ...(part ? { caption: undefined } : { size: this.size }), part, parts: this.parts, data }
  }
}

function sourceOf(data: Uint8Array | ArrayBuffer): Source {
  const bytes = new Uint8Array(data) // copies a Uint8Array, so that the app can reuse its own
  return { size: bytes.length, slice: (start, end) => ({ arrayBuffer: () => Promise.resolve(bytes.slice(start, end).buffer) }) }
}
