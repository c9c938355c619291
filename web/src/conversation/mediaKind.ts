import type { frame } from '@hermes-mobile/sdk'

/** mediaKind returns the kind under which a file of this type is sent. */
export function mediaKind(mime: string): string {
  const major = mime.split('/')[0]!
  return ['image', 'video', 'audio'].includes(major) ? major : 'document'
}

/**
 * acceptsKind reports whether the agent accepts files of a kind. An agent that lists no kinds
 * accepts all.
 */
export function acceptsKind({ media, media_kinds }: frame.Capabilities, kind: string): boolean {
  return media && (media_kinds.length === 0 || media_kinds.includes(kind))
}
