import type { Profile } from '@hermes-mobile/sdk'
import { useEffect, useState } from 'preact/hooks'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { useAct } from './act'
import { Icon } from './icon'
import { inform } from './notice'
import { Panel, Problem } from './panel'

/** ProfileChoice shows the profile that the conversation talks to, and lets the user choose another. It is loaded where there are several. */
export function ProfileChoice({ talk }: { talk: Talk }) {
  const { calls } = talk.agent
  const [profiles, setProfiles] = useState<readonly Profile[]>([])
  const [open, setOpen] = useState(false)
  const { busy, problem, act } = useAct()
  const load = async () => setProfiles((await calls.ask<{ profiles: Profile[] }>('profiles.list')).profiles)
  const offered = calls.offers('profiles.list')
  useEffect(() => {
    if (offered) void act(load)
  }, [talk, offered, open]) // a device that shares the conversation may have chosen another
  if (!calls.has('profiles.list')) return null
  const current = profiles.find((profile) => profile.current)
  const close = () => setOpen(false)
  const choose = async ({ name }: Profile) => {
    if (!(await act(() => calls.ask('profiles.choose', { name }).then(load)))) return
    close()
    inform(t('profileChosen', { name }))
  }
  return (
    <>
      <button type="button" class="small model" aria-haspopup="dialog" onClick={() => setOpen(true)} aria-label={current ? t('profileIs', { name: current.name }) : t('profiles')}>
        <span dir="auto">{current ? current.name : t('profiles')}</span><Icon name="down" />
      </button>
      <Panel title={t('profiles')} open={open} close={close}>
        <p class="quiet">{t('profilesText')}</p>
        <Problem text={problem} />
        <section class="models">
          <ul>
            {profiles.map((profile) => (
              <li key={profile.name}>
                <button type="button" aria-pressed={profile.current} disabled={busy || !calls.offers('profiles.choose')} onClick={() => void choose(profile)}>
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
