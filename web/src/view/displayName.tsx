import { visible, whole } from '@hermes-mobile/sdk/visible'
import type { ComponentChildren } from 'preact'
import { parts, type Key } from '../words/words'

/** nameOf is the name of a person or device for a place that takes a plain text: in one line, with marks for what does not show as itself. */
export function nameOf(name: string): string {
  return whole(visible(name)).replace(/\s+/g, ' ')
}

/** Name shows the name of a person or device, whose direction of writing does not reach what stands around it. */
export function Name({ of }: { of: string }) {
  return <bdi>{nameOf(of)}</bdi>
}

/** sentence is a text of the page with names in it. */
export function sentence(key: Key, names: Record<string, string>): ComponentChildren {
  return parts(key).map((part, i) => (i % 2 ? <Name key={i} of={names[part] ?? part} /> : part))
}
