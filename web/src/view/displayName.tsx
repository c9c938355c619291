import { visible, whole } from '@hermes-mobile/sdk/visible'
import type { ComponentChildren } from 'preact'
import { templateParts, type Key } from '../i18n/i18n'

/**
 * displayName returns the name of a user or device as plain text: on one line, with invisible
 * characters marked.
 */
export function displayName(name: string): string {
  return whole(visible(name)).replace(/\s+/g, ' ')
}

/**
 * DisplayName shows the name of a user or device. Its text direction doesn't affect the text around
 * it.
 */
export function DisplayName({ of }: { of: string }) {
  return <bdi>{displayName(of)}</bdi>
}

/** textWithNames returns a text with names in its placeholders. */
export function textWithNames(key: Key, names: Record<string, string>): ComponentChildren {
  return templateParts(key).map((part, i) => (i % 2 ? <DisplayName key={i} of={names[part] ?? part} /> : part))
}
