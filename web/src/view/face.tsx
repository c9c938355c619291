import { signal } from '@preact/signals'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { Avatar } from './avatar'

/** How loud the person speaks while a voice message is recorded, 0 to 1; undefined: nothing is recorded. */
export const loudness = signal<number | undefined>(undefined)

/** Face is the agent's avatar: the page that the owner set, in a closed frame, or the built-in one. */
export function Face({ talk }: { talk: Talk }) {
  const { avatarUrl } = talk.status.value
  const { avatar } = talk.activity.value
  const level = loudness.value
  const state = level === undefined ? avatar || 'idle' : 'listening'
  if (/^https?:\/\//i.test(avatarUrl)) {
    return <iframe class="face" src={avatarUrl} sandbox="allow-scripts" title={t('avatar')} referrerpolicy="no-referrer" />
  }
  return <div class="face" data-avatar={state}><Avatar state={state} level={level} /></div>
}
