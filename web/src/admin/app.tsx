import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../view/icon'
import { Toasts } from '../view/toasts'
import { language, t } from '../i18n/i18n'
import { Audit } from './audit'
import { DisplaySettings } from './displaySettings'
import { Deliveries } from './deliveries'
import { Devices } from './devices'
import { Dialog } from '../view/dialog'
import { Doctor } from './doctor'
import { OverviewSection } from './overview'
import { Login } from './login'
import { Users } from './users'
import { access, loggedIn, overview, section, sections, stale, issueCount, type Section } from './state'
import { Tokens } from './tokens'

const names = { overview: 'adminOverview', devices: 'adminDevices', people: 'adminUsers', deliveries: 'adminDeliveries', doctor: 'adminDoctor', tokens: 'adminTokens', audit: 'auditTitle' } as const
const views: Record<Section, () => preact.JSX.Element | null> = { overview: OverviewSection, devices: Devices, people: Users, deliveries: Deliveries, doctor: Doctor, tokens: Tokens, audit: Audit }

/** AdminApp is the whole page: the login or one of the sections. */
export function AdminApp() {
  const lang = language.value
  useEffect(() => {
    document.documentElement.lang = lang
    document.title = `${t('adminTitle')} – ${t('title')}`
  }, [lang])
  return (
    <>
      {loggedIn() && overview.value ? <Sections /> : access.value && !loggedIn() ? <Login /> : <Loading />}
      <Dialog />
      <Toasts />
    </>
  )
}

function Loading() {
  return <main class="screen" aria-busy="true"><h1 class="hidden">{t('adminTitle')}</h1>{stale.value && <p class="card-panel problem" role="alert">{stale.value}</p>}</main>
}

function Sections() {
  const View = views[section.value]
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the navigation is wider than the screen.
    const here = nav.current?.querySelector<HTMLElement>('[aria-current]')
    if (here) nav.current!.scrollLeft = here.offsetLeft - (nav.current!.clientWidth - here.offsetWidth) / 2
  }, [section.value])
  return (
    <div class="admin">
      <header class="admin-head">
        <h1>{t('adminTitle')}</h1>
        <DisplaySettings />
      </header>
      <nav class="admin-nav" ref={nav} aria-label={t('adminSections')}>
        {sections.map((name) => <a key={name} href={'#/' + name} aria-current={section.value === name ? 'page' : undefined}>{t(names[name])}<Count of={name} /></a>)}
      </nav>
      <main class="admin-main">
        {access.value?.plain && <p class="admin-warning"><Icon name="warning" />{t('adminPlain')}</p>}
        {stale.value && <p class="admin-warning" role="alert"><Icon name="warning" />{t('adminStale', { why: stale.value })}</p>}
        {overview.value!.problems.map((text) => <p class="admin-warning" key={text} lang="en" dir="auto"><Icon name="warning" />{text}</p>)}
        <h2>{t(names[section.value])}</h2>
        <View />
      </main>
    </div>
  )
}

/** Count shows how many items in a section wait for the owner. */
function Count({ of }: { of: Section }) {
  const { pairing } = overview.value!
  const n = of === 'people' ? pairing.pending.length : of === 'doctor' ? issueCount.value : 0
  return n > 0 ? <span class="admin-count">{n}</span> : null
}
