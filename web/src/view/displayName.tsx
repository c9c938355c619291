import { visible, whole } from '@hermes-mobile/sdk/visible'
import type { ComponentChildren } from 'preact'
import { templateParts, type Key } from '../i18n/i18n'

/** nameOf is the name of a person or device for a place that takes a plain text: in one line, with marks for what does not show as itself. */
export function displayName(name: string): string {
  return whole(visible(name)).replace(/\s+/g, ' ')
}

/** Name shows the name of a person or device, whose direction of writing does not reach what stands around it. */
export function DisplayName({ of }: { of: string }) {
  return <bdi>{displayName(of)}</bdi>
}

/** sentence is a text of the page with names in it. */
export function textWithNames(key: Key, names: Record<string, string>): ComponentChildren {
  return templateParts(key).map((part, i) => (i % 2 ? <DisplayName key={i} of={names[part] ?? part} /> : part))
}
