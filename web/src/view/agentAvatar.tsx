import { signal } from '@preact/signals'
import { avatarFrame } from '@hermes-mobile/sdk/avatar'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { Avatar } from './avatar'

/** The loudness of the user's voice during a recording, 0 to 1. undefined: no recording. */
export const loudness = signal<number | undefined>(undefined)

/**
 * AgentAvatar shows the avatar page that the owner set, in a sandboxed frame, or the built-in
 * avatar.
 */
export function AgentAvatar({ client }: { client: Client }) {
  const { avatarUrl } = client.status.value
  if (/^https?:\/\//i.test(avatarUrl) && URL.canParse(avatarUrl)) return <FramedAvatar client={client} url={avatarUrl} />
  return <BuiltInAvatar client={client} />
}

function BuiltInAvatar({ client }: { client: Client }) {
  const level = loudness.value
  const state = level === undefined ? client.activity.value.avatar || 'idle' : 'listening'
  return <div class="agent-avatar" data-avatar={state}><Avatar state={state} level={level} /></div>
}

/**
 * framedURL is where our server serves the owner's avatar page. The page may read its own query and
 * fragment.
 */
function framedURL(avatarUrl: string): string {
  const { search, hash } = new URL(avatarUrl)
  return './avatar' + search + hash
}

/**
 * FramedAvatar tells the owner's page what the agent does. The page gets messages only: it has no
 * origin and no access to this page.
 */
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
  // A page that was cached before the owner set the avatar forbids it. The next load allows it.
  useEffect(() => {
    const refused = (event: SecurityPolicyViolationEvent) => event.effectiveDirective === 'frame-src' && setBlocked(true)
    document.addEventListener('securitypolicyviolation', refused)
    return () => document.removeEventListener('securitypolicyviolation', refused)
  }, [])
  if (blocked) return <BuiltInAvatar client={client} />
  return <iframe class="agent-avatar" ref={frame} src={framedURL(url)} sandbox="allow-scripts" title={t('avatar')} referrerpolicy="no-referrer" />
}
