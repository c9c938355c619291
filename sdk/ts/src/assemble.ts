import type { FileEvent } from './events.js'
import type { Media, Message } from './frames.js'

/** Reply is a message under way: whole texts with additions, or chunks of one text (doc/protocol.md §4). */
export class Reply {
  private whole = ''
  private pieces: string[] | undefined

  /** Returns false for an addition that does not fit the text so far. A frame with the whole text fixes that. */
  take(m: Message): boolean {
    if (m.append !== undefined) {
      // The length of a string counts UTF-16 code units, as `at` does. Without `at` the addition goes to the end.
      if (m.at > this.whole.length) return false
      this.whole = this.whole.slice(0, m.at || undefined) + m.append
    } else if (m.edit || m.chunk.total <= 1) {
      this.whole = m.text
      this.pieces = undefined
    } else if (m.chunk.index >= 0 && m.chunk.index < m.chunk.total && m.chunk.index < 1 << 20) {
      this.pieces ??= []
      this.pieces[m.chunk.index] = m.text
    }
    return true
  }

  text(): string {
    return this.pieces?.join('') ?? this.whole
  }
}

/** Incoming is a file under way, part by part in order (doc/protocol.md §5). */
export class Incoming {
  private parts: Uint8Array[] = []
  private bytes = 0
  readonly file: FileEvent

  constructor(
    first: Media,
    private readonly limit: number,
  ) {
    const { id, kind, mime, filename, caption, size, source, url } = first
    this.file = { type: 'file', id, kind, mime, filename, caption, size, replyTo: first.reply_to, source, url }
  }

  /** Returns true when the file is complete, or when its error says why it never will be. */
  take(m: Media): boolean {
    const f = this.file
    f.caption ||= m.caption
    if (f.error) {
      // The file failed. Only its last part matters.
    } else if (m.part !== this.parts.length) {
      this.fail(`part ${m.part} came where part ${this.parts.length} was due`)
    } else if (this.bytes + m.data.length > this.limit) {
      this.fail(`it is larger than the ${this.limit} bytes this app takes`)
    } else {
      this.parts.push(m.data)
      this.bytes += m.data.length
    }
    if (!m.final && m.part < m.parts - 1) return false
    if (f.error || f.url) return true
    if (f.size > 0 && f.size !== this.bytes) {
      this.fail(`it has ${this.bytes} bytes, not ${f.size}`)
      return true
    }
    f.size = this.bytes
    f.data = join(this.parts, this.bytes)
    return true
  }

  private fail(why: string): void {
    this.file.error = new Error(`file ${this.file.filename}: ${why}`)
    this.parts = []
  }
}

/** join concatenates arrays. */
export function join(parts: Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
