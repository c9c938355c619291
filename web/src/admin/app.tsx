import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../view/icon'
import { Notices } from '../view/notices'
import { language, t } from '../words/words'
import { Audit } from './audit'
import { Choices } from './choices'
import { Deliveries } from './deliveries'
import { Devices } from './devices'
import { Dialog } from '../view/dialog'
import { Doctor } from './doctor'
import { Glance } from './glance'
import { Login } from './login'
import { People } from './people'
import { access, entered, overview, place, places, stale, trouble, type Place } from './state'
import { Tokens } from './tokens'

const names = { overview: 'ownOverview', devices: 'ownDevices', people: 'ownPeople', deliveries: 'ownDeliveries', doctor: 'ownDoctor', tokens: 'ownTokens', audit: 'ownAudit' } as const
const views: Record<Place, () => preact.JSX.Element | null> = { overview: Glance, devices: Devices, people: People, deliveries: Deliveries, doctor: Doctor, tokens: Tokens, audit: Audit }

/** Owner is the whole page: getting in, or one of its places. */
export function Owner() {
  const lang = language.value
  useEffect(() => {
    document.documentElement.lang = lang
    document.title = `${t('ownTitle')} – ${t('title')}`
  }, [lang])
  return (
    <>
      {entered() && overview.value ? <Places /> : access.value && !entered() ? <Login /> : <Beginning />}
      <Dialog />
      <Notices />
    </>
  )
}

function Beginning() {
  return <main class="screen" aria-busy="true"><h1 class="hidden">{t('ownTitle')}</h1>{stale.value && <p class="card-panel problem" role="alert">{stale.value}</p>}</main>
}

function Places() {
  const View = views[place.value]
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the places are wider than the screen.
    const here = nav.current?.querySelector<HTMLElement>('[aria-current]')
    if (here) nav.current!.scrollLeft = here.offsetLeft - (nav.current!.clientWidth - here.offsetWidth) / 2
  }, [place.value])
  return (
    <div class="own">
      <header class="own-head">
        <h1>{t('ownTitle')}</h1>
        <Choices />
      </header>
      <nav class="own-nav" ref={nav} aria-label={t('ownPlaces')}>
        {places.map((name) => <a key={name} href={'#/' + name} aria-current={place.value === name ? 'page' : undefined}>{t(names[name])}<Count of={name} /></a>)}
      </nav>
      <main class="own-main">
        {access.value?.plain && <p class="own-warning"><Icon name="warning" />{t('ownPlain')}</p>}
        {stale.value && <p class="own-warning" role="alert"><Icon name="warning" />{t('ownStale', { why: stale.value })}</p>}
        {overview.value!.problems.map((text) => <p class="own-warning" key={text} lang="en" dir="auto"><Icon name="warning" />{text}</p>)}
        <h2>{t(names[place.value])}</h2>
        <View />
      </main>
    </div>
  )
}

/** Count says how much waits for the owner in a place. */
function Count({ of }: { of: Place }) {
  const { pairing } = overview.value!
  const n = of === 'people' ? pairing.pending.length : of === 'doctor' ? trouble.value : 0
  return n > 0 ? <span class="own-count">{n}</span> : null
}
