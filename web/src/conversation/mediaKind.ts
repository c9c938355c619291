import type { frame } from '@hermes-mobile/sdk'

/** kindOf is the kind that a file of this type is sent as. */
export function mediaKind(mime: string): string {
  const major = mime.split('/')[0]!
  return ['image', 'video', 'audio'].includes(major) ? major : 'document'
}

/** takes tells whether the agent takes files of a kind. One that says nothing of kinds takes all. */
export function acceptsKind({ media, media_kinds }: frame.Capabilities, kind: string): boolean {
  return media && (media_kinds.length === 0 || media_kinds.includes(kind))
}
