import { signal } from '@preact/signals'
import { avatarFrame } from '@hermes-mobile/sdk/avatar'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { Avatar } from './avatar'

/** How loud the person speaks while a voice message is recorded, 0 to 1; undefined: nothing is recorded. */
export const loudness = signal<number | undefined>(undefined)

/** Face is the agent's avatar: the page that the owner set, in a closed frame, or the built-in one. */
export function AgentAvatar({ client }: { client: Client }) {
  const { avatarUrl } = client.status.value
  if (/^https?:\/\//i.test(avatarUrl) && URL.canParse(avatarUrl)) return <FramedAvatar client={client} url={avatarUrl} />
  return <BuiltInAvatar client={client} />
}

function BuiltInAvatar({ client }: { client: Client }) {
  const level = loudness.value
  const state = level === undefined ? client.activity.value.avatar || 'idle' : 'listening'
  return <div class="face" data-avatar={state}><Avatar state={state} level={level} /></div>
}

/** framed is where our server serves the owner's avatar page for the frame. Query and fragment are the page's own, and it may read them. */
function framedURL(avatarUrl: string): string {
  const { search, hash } = new URL(avatarUrl)
  return './avatar' + search + hash
}

/** Framed tells the owner's page what the agent does. It gets messages and nothing else: it has no origin, and no access to this page. */
function FramedAvatar({ client, url }: { client: Client; url: string }) {
  const [blocked, setBlocked] = useState(false)
  const frame = useRef<HTMLIFrameElement>(null)
  useEffect(() => {
    const avatar = avatarFrame(frame.current!)
    avatar.setState(client.activity.peek().avatar as 'idle')
    const ends = [
      avatar.follow(client.device),
      client.device.on('message', ({ final, text }) => final && avatar.speak(text)),
      loudness.subscribe((level) => avatar.setVolume(level ?? 0)),
      avatar.close,
    ]
    return () => ends.forEach((end) => end())
  }, [client, url])
  // A page that was kept from before the owner chose this one does not allow it; the next time it does.
  useEffect(() => {
    const refused = (event: SecurityPolicyViolationEvent) => event.effectiveDirective === 'frame-src' && setBlocked(true)
    document.addEventListener('securitypolicyviolation', refused)
    return () => document.removeEventListener('securitypolicyviolation', refused)
  }, [])
  if (blocked) return <BuiltInAvatar client={client} />
  return <iframe class="face" ref={frame} src={framedURL(url)} sandbox="allow-scripts" title={t('avatar')} referrerpolicy="no-referrer" />
}
