import { fromBase64, toBase64 } from './base64.js'
import { DOWN, type Down, type Shape, type Up } from './frames.js'

/** A frame of a type that this version does not know, as JSON, for an app that does. */
export interface UnknownFrame {
  t: '?'
  type: string
  frame: Record<string, unknown>
}

/**
 * decode reads one text message of a server as a client must: it fills in absent and null fields, drops unknown fields, and returns
 * an UnknownFrame for an unknown type. It throws for a message that no server of this protocol sends.
 */
export function decode(text: string): Down | UnknownFrame {
  const frame: unknown = JSON.parse(text)
  if (!isObject(frame)) throw new SyntaxError('a frame must be a JSON object')
  const type = frame.t ?? ''
  if (typeof type !== 'string') throw new SyntaxError('the type of a frame must be a string')
  if (!Object.hasOwn(DOWN, type)) return { t: '?', type, frame }
  return { t: type, ...(fill(DOWN[type as Down['t']], frame, type) as object) } as Down
}

/** encode returns a frame as a device sends it. */
export function encode(frame: Up): string {
  // Do not use the value parameter: a Buffer of Node has already converted itself.
  return JSON.stringify(frame, function (this: Record<string, unknown>, key, value: unknown) {
    return this[key] instanceof Uint8Array ? toBase64(this[key]) : value
  })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fill(shape: Shape, value: unknown, name: string): unknown {
  if (shape === 'any') return value
  if (shape === 'bytes') return fromBase64(fill('', value, name) as string)
  if (Array.isArray(shape)) {
    if (value == null) return []
    if (!Array.isArray(value)) throw wrong(name)
    return value.map((item) => fill(shape[0], item, name))
  }
  if (typeof shape === 'object') {
    if (value != null && !isObject(value)) throw wrong(name)
    const filled: Record<string, unknown> = {}
    for (const [key, inner] of Object.entries(shape)) {
      const field = key.replace('?', '')
      const given = value == null || !Object.hasOwn(value, field) ? null : (value as Record<string, unknown>)[field]
      if (given != null || field === key) filled[field] = fill(inner, given, name + '.' + field)
    }
    return filled
  }
  if (value == null) return shape
  if (typeof value !== typeof shape) throw wrong(name)
  return value
}

function wrong(name: string): SyntaxError {
  return new SyntaxError('a field of a frame has the wrong type: ' + name)
}
