import type { Notifying, State } from '../notify/notifying'
import { isQuiet, timeZone } from '../notify/wish'
import { direct } from '../setup/api'
import { t, type Key } from '../words/words'

const sentences: Record<Exclude<State, 'failed'>, Key> = {
  insecure: 'notifyInsecure', install: 'notifyInstall', unsupported: 'notifyUnsupported', unknown: 'notifyUnknown', serverOff: 'notifyServerOff', denied: 'notifyDenied',
  off: 'notifyOff', pending: 'notifyPending', on: 'notifyOn',
}

/** What a person proposes who has not said which hours are quiet. */
const NIGHT = { from: '22:00', to: '07:00' }

/** Notifications is the part of the settings about them. It says how things stand, and offers what can be changed. */
export function Notifications({ notifying }: { notifying: Notifying }) {
  const state = notifying.state.value
  const busy = notifying.busy.value
  const { on, content, quiet } = notifying.wish.value
  const can = state === 'off' || state === 'failed' || state === 'pending' || state === 'on'
  const active = on && can
  const hours = (changes: Partial<typeof NIGHT>) => {
    const next = { ...(quiet ?? NIGHT), ...changes }
    if (isQuiet(next)) void notifying.choose({ quiet: next })
  }
  return (
    <section class="notify" aria-labelledby="notify-title">
      <h3 id="notify-title">{t('notify')}</h3>
      <label class="check-line">
        <input type="checkbox" role="switch" checked={active || notifying.asking.value} disabled={!can || busy} onChange={() => void (active ? notifying.switchOff() : notifying.switchOn())} aria-describedby="notify-state" />
        {t('notifySwitch')}
      </label>
      <p id="notify-state" class={state === 'failed' ? 'problem' : 'quiet'} role="status" dir="auto" data-notify={busy ? 'busy' : state}>
        {busy ? t('notifyBusy') : state === 'failed' ? t('notifyFailed', { reason: notifying.problem.value }) : t(state === 'serverOff' && direct ? 'notifyAppOff' : sentences[state])}
      </p>
      {active && (
        <>
          <label class="check-line"><input type="checkbox" checked={content} onChange={(e) => void notifying.choose({ content: e.currentTarget.checked })} aria-describedby="notify-content" />{t('notifyContent')}</label>
          <small id="notify-content">{t('notifyContentHint')}</small>
          <label class="check-line"><input type="checkbox" checked={Boolean(quiet)} onChange={(e) => void notifying.choose({ quiet: e.currentTarget.checked ? NIGHT : undefined })} />{t('notifyQuiet')}</label>
          {quiet && (
            <div class="hours">
              <label>{t('notifyFrom')}<input type="time" required value={quiet.from} onChange={(e) => hours({ from: e.currentTarget.value })} /></label>
              <label>{t('notifyTo')}<input type="time" required value={quiet.to} onChange={(e) => hours({ to: e.currentTarget.value })} /></label>
              <small>{t('notifyQuietHint', { zone: timeZone() })}</small>
            </div>
          )}
          <button type="button" class="wide" disabled={busy || state !== 'on' || notifying.tested.value.state === 'running'} onClick={() => void notifying.test()}>{t('notifyTest')}</button>
        </>
      )}
      <Tested notifying={notifying} />
    </section>
  )
}

function Tested({ notifying }: { notifying: Notifying }) {
  const tested = notifying.tested.value
  const words = { none: '', running: t('notifyTestRuns'), sent: t('notifyTestSent'), arrived: t('notifyTestArrived'), missing: t('notifyTestMissing') }
  return (
    <p class={tested.state === 'failed' || tested.state === 'missing' ? 'problem' : 'quiet'} role="status" dir="auto" data-tested={tested.state}>
      {tested.state === 'failed' ? t('notifyTestFailed', { reason: tested.reason }) : words[tested.state]}
    </p>
  )
}
