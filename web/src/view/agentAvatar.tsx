import { signal } from '@preact/signals'
import { avatarFrame } from '@hermes-mobile/sdk/avatar'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { Avatar } from './avatar'

/** How loud the person speaks while a voice message is recorded, 0 to 1; undefined: nothing is recorded. */
export const loudness = signal<number | undefined>(undefined)

/** Face is the agent's avatar: the page that the owner set, in a closed frame, or the built-in one. */
export function Face({ talk }: { talk: Talk }) {
  const { avatarUrl } = talk.status.value
  if (/^https?:\/\//i.test(avatarUrl) && URL.canParse(avatarUrl)) return <Framed talk={talk} url={avatarUrl} />
  return <BuiltIn talk={talk} />
}

function BuiltIn({ talk }: { talk: Talk }) {
  const level = loudness.value
  const state = level === undefined ? talk.activity.value.avatar || 'idle' : 'listening'
  return <div class="face" data-avatar={state}><Avatar state={state} level={level} /></div>
}

/** framed is where our server serves the owner's avatar page for the frame. Query and fragment are the page's own, and it may read them. */
function framed(avatarUrl: string): string {
  const { search, hash } = new URL(avatarUrl)
  return './avatar' + search + hash
}

/** Framed tells the owner's page what the agent does. It gets messages and nothing else: it has no origin, and no access to this page. */
function Framed({ talk, url }: { talk: Talk; url: string }) {
  const [blocked, setBlocked] = useState(false)
  const frame = useRef<HTMLIFrameElement>(null)
  useEffect(() => {
    const avatar = avatarFrame(frame.current!)
    avatar.setState(talk.activity.peek().avatar as 'idle')
    const ends = [
      avatar.follow(talk.device),
      talk.device.on('message', ({ final, text }) => final && avatar.speak(text)),
      loudness.subscribe((level) => avatar.setVolume(level ?? 0)),
      avatar.close,
    ]
    return () => ends.forEach((end) => end())
  }, [talk, url])
  // A page that was kept from before the owner chose this one does not allow it; the next time it does.
  useEffect(() => {
    const refused = (event: SecurityPolicyViolationEvent) => event.effectiveDirective === 'frame-src' && setBlocked(true)
    document.addEventListener('securitypolicyviolation', refused)
    return () => document.removeEventListener('securitypolicyviolation', refused)
  }, [])
  if (blocked) return <BuiltIn talk={talk} />
  return <iframe class="face" ref={frame} src={framed(url)} sandbox="allow-scripts" title={t('avatar')} referrerpolicy="no-referrer" />
}
