import type { Profile } from '@hermes-mobile/sdk'
import { useEffect, useState } from 'preact/hooks'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { useAction } from './action'
import { Icon } from './icon'
import { showToast } from './toast'
import { Panel, Problem } from './panel'

/**
 * ProfileChoice shows the conversation's profile and lets the user choose another. It is loaded
 * only if there are several.
 */
export function ProfileChoice({ client }: { client: Client }) {
  const { calls } = client.agent
  const [profiles, setProfiles] = useState<readonly Profile[]>([])
  const [open, setOpen] = useState(false)
  const { busy, problem, run } = useAction()
  const load = async () => setProfiles((await calls.call<{ profiles: Profile[] }>('profiles.list')).profiles)
  const offered = calls.canCall('profiles.list')
  useEffect(() => {
    if (offered) void run(load)
  }, [client, offered, open]) // another device of the conversation may have chosen one
  if (!calls.supports('profiles.list')) return null
  const current = profiles.find((profile) => profile.current)
  const close = () => setOpen(false)
  const choose = async ({ name }: Profile) => {
    if (!(await run(() => calls.call('profiles.choose', { name }).then(load)))) return
    close()
    showToast(t('profileChosen', { name }))
  }
  return (
    <>
      <button type="button" class="small model" aria-haspopup="dialog" onClick={() => setOpen(true)} aria-label={current ? t('profileIs', { name: current.name }) : t('profiles')}>
        <span dir="auto">{current ? current.name : t('profiles')}</span><Icon name="down" />
      </button>
      <Panel title={t('profiles')} open={open} close={close}>
        <p class="muted">{t('profilesText')}</p>
        <Problem text={problem} />
        <section class="models">
          <ul>
            {profiles.map((profile) => (
              <li key={profile.name}>
                <button type="button" aria-pressed={profile.current} disabled={busy || !calls.canCall('profiles.choose')} onClick={() => void choose(profile)}>
                  <span dir="auto">{profile.name}</span>{profile.current && <Icon name="check" />}
                </button>
              </li>
            ))}
          </ul>
        </section>
      </Panel>
    </>
  )
}
