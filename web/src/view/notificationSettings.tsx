import type { Notifications, NotificationState } from '../notify/notifications'
import { isQuietHours, timeZone } from '../notify/preferences'
import { isDirectClient } from '../connect/api'
import { t, type Key } from '../i18n/i18n'

const messages: Record<Exclude<NotificationState, 'failed'>, Key> = {
  insecure: 'notifyInsecure', install: 'notifyInstall', unsupported: 'notifyUnsupported', unknown: 'notifyUnknown', serverOff: 'notifyServerOff', denied: 'notifyDenied',
  off: 'notifyOff', pending: 'notifyPending', on: 'notifyOn',
}

/** The quiet hours that the page suggests. */
const DEFAULT_HOURS = { from: '22:00', to: '07:00' }

/**
 * NotificationSettings is the section of the settings for notifications. It shows their state and
 * the choices.
 */
export function NotificationSettings({ notifications }: { notifications: Notifications }) {
  const state = notifications.state.value
  const busy = notifications.busy.value
  const { on, content, quiet } = notifications.preferences.value
  const can = state === 'off' || state === 'failed' || state === 'pending' || state === 'on'
  const active = on && can
  const hours = (changes: Partial<typeof DEFAULT_HOURS>) => {
    const next = { ...(quiet ?? DEFAULT_HOURS), ...changes }
    if (isQuietHours(next)) void notifications.update({ quiet: next })
  }
  return (
    <section class="notify" aria-labelledby="notify-title">
      <h3 id="notify-title">{t('notify')}</h3>
      <label class="check-line">
        <input type="checkbox" role="switch" checked={active || notifications.asking.value} disabled={!can || busy} onChange={() => void (active ? notifications.switchOff() : notifications.switchOn())} aria-describedby="notify-state" />
        {t('notifySwitch')}
      </label>
      <p id="notify-state" class={state === 'failed' ? 'problem' : 'muted'} role="status" dir="auto" data-notify={busy ? 'busy' : state}>
        {busy ? t('notifyBusy') : state === 'failed' ? t('notifyFailed', { reason: notifications.problem.value }) : t(state === 'serverOff' && isDirectClient ? 'notifyAppOff' : messages[state])}
      </p>
      {active && (
        <>
          <label class="check-line"><input type="checkbox" checked={content} onChange={(e) => void notifications.update({ content: e.currentTarget.checked })} aria-describedby="notify-content" />{t('notifyContent')}</label>
          <small id="notify-content">{t('notifyContentHint')}</small>
          <label class="check-line"><input type="checkbox" checked={Boolean(quiet)} onChange={(e) => void notifications.update({ quiet: e.currentTarget.checked ? DEFAULT_HOURS : undefined })} />{t('notifyQuiet')}</label>
          {quiet && (
            <div class="hours">
              <label>{t('notifyFrom')}<input type="time" required value={quiet.from} onChange={(e) => hours({ from: e.currentTarget.value })} /></label>
              <label>{t('notifyTo')}<input type="time" required value={quiet.to} onChange={(e) => hours({ to: e.currentTarget.value })} /></label>
              <small>{t('notifyQuietHint', { zone: timeZone() })}</small>
            </div>
          )}
          <button type="button" class="wide" disabled={busy || state !== 'on' || notifications.testState.value.state === 'running'} onClick={() => void notifications.test()}>{t('notifyTest')}</button>
        </>
      )}
      <TestStatus notifications={notifications} />
    </section>
  )
}

function TestStatus({ notifications }: { notifications: Notifications }) {
  const tested = notifications.testState.value
  const words = { none: '', running: t('notifyTestSending'), sent: t('notifyTestSent'), arrived: t('notifyTestArrived'), missing: t('notifyTestMissing') }
  return (
    <p class={tested.state === 'failed' || tested.state === 'missing' ? 'problem' : 'muted'} role="status" dir="auto" data-tested={tested.state}>
      {tested.state === 'failed' ? t('notifyTestFailed', { reason: tested.reason }) : words[tested.state]}
    </p>
  )
}
