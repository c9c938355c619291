import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { errorText } from '../view/errorText'
import { t, type Key } from '../i18n/i18n'
import { submit, wizardOpen, setupState, type Action, type Mode, type State, type Step } from './api'
import { TestResults } from './testResults'
import { problemText } from './problemText'
import './connect.css'
import './messages'

const titles: Record<Step, Key> = { welcome: 'connectWelcome', remote: 'connectRemote', local: 'connectLocal', auth: 'connectAuth', unlock: 'connectUnlock', test: 'connectTest', done: 'connectDone' }

/**
 * Wizard is the setup, with one question per screen. The program checks each answer and chooses the
 * next step.
 */
export function Wizard() {
  const state = setupState.value!
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState('')
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => title.current?.focus(), [state.step])

  const finish = () => (wizardOpen.value = false)
  /** send submits an action, then starts the test if nothing is missing for it. */
  const send = async (action: Action) => {
    setBusy(true)
    setTrouble('')
    try {
      const next = await submit(action)
      if (next.step === 'done' && !next.result) finish() // just opened, or cancelled
      else if (next.step === 'test' && !next.result && next.problems.length === 0 && action.do !== 'back') await submit({ do: 'test' })
    } catch (error) {
      setTrouble(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  const View = views[state.step]
  return (
    <main class="screen welcome">
      <div class="card-panel">
        <h1 ref={title} tabIndex={-1}>{t(titles[state.step])}</h1>
        {state.problems.map((p) => <p class="problem" role="alert" id="setup-problem" key={p.text}>{problemText(p.code, p.text)}</p>)}
        {trouble && <p class="problem" role="alert" dir="auto">{trouble}</p>}
        <View state={state} busy={busy} send={send} />
        {state.step === 'done' && <button type="button" class="primary wide" onClick={finish}>{t('connectStart')}</button>}
        {state.step !== 'welcome' && state.step !== 'done' && !(state.editing && state.step === 'remote') && (
          <button type="button" class="link" disabled={busy} onClick={() => void send({ do: 'back' })}>{t('back')}</button>
        )}
        {state.editing && <button type="button" class="link" disabled={busy} onClick={() => void send({ do: 'leave' })}>{t('cancel')}</button>}
      </div>
    </main>
  )
}

interface ViewProps {
  state: State
  busy: boolean
  send: (action: Action) => Promise<void>
}

function Form({ busy, label, submit, children }: { busy: boolean; label?: string; submit: () => void; children: ComponentChildren }) {
  return (
    <form onSubmit={(e) => { e.preventDefault(); submit() }} noValidate>
      {children}
      <button type="submit" class="primary wide" disabled={busy}>{busy ? t('connectBusy') : (label ?? t('connectNext'))}</button>
    </form>
  )
}

function Welcome({ busy, send }: ViewProps) {
  return <Form busy={busy} submit={() => void send({ do: 'begin' })}><p>{t('connectWelcomeText')}</p><p>{t('connectPrivacy')}</p></Form>
}

/**
 * isUnencrypted reports whether the user must agree to an address without encryption. This
 * machine's own addresses need no agreement.
 */
const isUnencrypted = (address: string) => /^\s*http:\/\/(?!localhost\b|127\.|\[::1\])/i.test(address)
const invalidProps = (state: State, ...fields: string[]) => (state.problems.some((p) => fields.includes(p.field)) ? { 'aria-invalid': true, 'aria-describedby': 'setup-problem' } : {})

function Address({ state, busy, send }: ViewProps) {
  const field = state.step as 'remote' | 'local'
  const [address, setAddress] = useState(state[field])
  const [insecure, setInsecure] = useState(state.insecure)
  return (
    <Form busy={busy} submit={() => void send({ do: field, [field]: address, insecure: isUnencrypted(address) && insecure })}>
      <label>
        {t('address')}
        <input type="url" inputMode="url" value={address} onInput={(e) => setAddress(e.currentTarget.value)} autocomplete="off" spellcheck={false} dir="ltr"
          placeholder={field === 'remote' ? 'https://hermes.example.com' : 'https://hermes.home.arpa'} {...invalidProps(state, field)} />
        <small>{t(field === 'remote' ? 'connectRemoteHint' : 'connectLocalHint')}</small>
      </label>
      {isUnencrypted(address) && (
        <label class="checkbox-label"><input type="checkbox" checked={insecure} onChange={(e) => setInsecure(e.currentTarget.checked)} /> {t('connectInsecure')}</label>
      )}
    </Form>
  )
}

const modes: [Mode, Key][] = [['none', 'connectNone'], ['bearer', 'connectBearer'], ['password', 'connectPassword']]

function Credential({ state, busy, send }: ViewProps) {
  const [mode, setMode] = useState<Mode>(state.auth)
  const [username, setUsername] = useState(state.username)
  const [secret, setSecret] = useState('')
  const kept = state.kept && mode === state.auth && (mode !== 'password' || username.trim() === state.username)
  return (
    <Form busy={busy} submit={() => void send({ do: 'auth', auth: mode, ...(mode === 'password' && { username }), ...(mode !== 'none' && { secret }) }).then(() => setSecret(''))}>
      <fieldset class="option-list">
        <legend>{t('connectAuthMethod')}</legend>
        {modes.map(([value, key]) => (
          <label class="checkbox-label" key={value}><input type="radio" name="auth" checked={mode === value} onChange={() => setMode(value)} /> {t(key)}</label>
        ))}
      </fieldset>
      {mode === 'password' && (
        <label>{t('connectUsername')}<input value={username} onInput={(e) => setUsername(e.currentTarget.value)} autocomplete="username" spellcheck={false} autocapitalize="none" dir="ltr" {...invalidProps(state, 'username')} /></label>
      )}
      {mode !== 'none' && (
        <label>
          {mode === 'bearer' ? t('token') : t('connectPasswordField')}
          <input type="password" value={secret} onInput={(e) => setSecret(e.currentTarget.value)} autocomplete="off" spellcheck={false} dir="ltr" {...invalidProps(state, 'secret')} />
          <small>{t(kept ? 'connectKeepSecret' : mode === 'bearer' ? 'connectBearerHint' : 'connectPasswordHint')}</small>
        </label>
      )}
    </Form>
  )
}

function Unlock({ state, busy, send }: ViewProps) {
  const [phrase, setPhrase] = useState('')
  const [again, setAgain] = useState('')
  const [differ, setDiffer] = useState(false)
  const [sure, setSure] = useState(false)
  const make = state.vault.state === 'unmade'
  const forget = sure ? (
    <div class="confirm" role="group" aria-label={t('connectForget')}>
      <p>{t('connectForgetConfirm')}</p>
      <button type="button" class="danger" disabled={busy} onClick={() => void send({ do: 'forget' })}>{t('connectForget')}</button>
      <button type="button" onClick={() => setSure(false)}>{t('cancel')}</button>
    </div>
  ) : <button type="button" class="wide" onClick={() => setSure(true)}>{t('connectForget')}</button>
  if (state.vault.state === 'lost') return <><p>{t('connectCredentialsLost')}</p>{forget}</>
  const submit = () => {
    setDiffer(make && phrase !== again)
    if (!make || phrase === again) void send({ do: 'unlock', secret: phrase }).then(() => { setPhrase(''); setAgain('') })
  }
  return (
    <>
      <Form busy={busy} submit={submit}>
        <p>{t(make ? 'connectNewPassphrase' : 'connectLocked')}</p>
        <label>{t('connectPassphrase')}<input type="password" value={phrase} onInput={(e) => setPhrase(e.currentTarget.value)} autocomplete="off" dir="ltr" {...invalidProps(state, 'passphrase')} /></label>
        {make && <label>{t('connectRepeatPassphrase')}<input type="password" value={again} onInput={(e) => setAgain(e.currentTarget.value)} autocomplete="off" dir="ltr" /></label>}
        {differ && <p class="problem" role="alert">{t('connectPassphrasesDiffer')}</p>}
      </Form>
      {!make && forget}
    </>
  )
}

function Test({ state, busy, send }: ViewProps) {
  return (
    <Form busy={busy} label={t(state.result ? 'connectTestAgain' : 'connectTestNow')} submit={() => void send({ do: 'test' })}>
      <p role="status">{busy ? t('connectTesting') : state.result ? t('connectTestFailed') : t('connectTestText')}</p>
      {state.result && <TestResults result={state.result} busy={busy} send={send} />}
    </Form>
  )
}

function Done({ state, busy, send }: ViewProps) {
  return (
    <>
      <p>{t('connectDoneText')}</p>
      {state.result && <TestResults result={state.result} busy={busy} send={send} />}
      {state.no_jobs && (
        <div>
          <label class="checkbox-label">
            <input type="checkbox" checked={state.jobs === 'on'} disabled={busy} aria-describedby="jobs-why" onChange={(e) => void send({ do: 'jobs', jobs: e.currentTarget.checked ? 'on' : 'off' })} /> {t('connectJobs')}
          </label>
          <small id="jobs-why">{t('connectJobsHint')}</small>
        </div>
      )}
    </>
  )
}

const views: Record<Step, (props: ViewProps) => ComponentChildren> = { welcome: Welcome, remote: Remote, local: Local, auth: Credential, unlock: Unlock, test: Test, done: Done }

/** Each address has its own form, so neither keeps text typed into the other. */
function Remote(props: ViewProps) {
  return <Address {...props} key="remote" />
}
function Local(props: ViewProps) {
  return <Address {...props} key="local" />
}
