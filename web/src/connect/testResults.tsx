import { t } from '../i18n/i18n'
import type { Action, State } from './api'
import { problemText } from './problemText'

/** TestResults shows the test result of each address and what the user can do about it. */
export function TestResults({ result, busy, send }: { result: NonNullable<State['result']>; busy: boolean; send: (action: Action) => Promise<void> }) {
  return (
    <ul class="attempts">
      {result.attempts.map((a) => (
        <li key={a.kind} data-ok={a.ok}>
          <strong>{t(a.kind === 'local' ? 'routeLocal' : 'routeRemote')}</strong> <span dir="ltr">{a.host}</span>
          <p>{a.ok ? t('connectWorks', { version: a.version || '–' }) : problemText(a.code, a.text)}</p>
          {a.pin && (
            <>
              <dl class="facts">
                <dt>{t('connectCertificate')}</dt><dd dir="ltr">{a.certificate}</dd>
                <dt>{t('connectFingerprint')}</dt><dd dir="ltr" class="pin">{a.pin}</dd>
              </dl>
              <p>{t('connectCompare')}</p>
              <button type="button" class="wide" disabled={busy} onClick={() => void send({ do: 'trust', kind: a.kind, pin: a.pin })}>{t('connectTrust')}</button>
            </>
          )}
          {a.may_go && (
            <button type="button" class="wide" disabled={busy} onClick={() => void send({ do: 'decline' })}>{t('connectDecline')}</button>
          )}
          {!a.ok && a.code === 'other' && a.kind === 'remote' && (
            <button type="button" class="wide" disabled={busy} onClick={() => void send({ do: 'relearn' })}>{t('connectGatewayReplaced')}</button>
          )}
        </li>
      ))}
    </ul>
  )
}
