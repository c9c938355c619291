import { t } from '../words/words'
import type { Action, State } from './api'
import { said } from './said'

/** Outcome says of each address what became of the test, and offers what can be done about it. */
export function Outcome({ result, busy, send }: { result: NonNullable<State['result']>; busy: boolean; send: (action: Action) => Promise<void> }) {
  return (
    <ul class="attempts">
      {result.attempts.map((a) => (
        <li key={a.kind} data-ok={a.ok}>
          <strong>{t(a.kind === 'local' ? 'setLocalName' : 'setRemoteName')}</strong> <span dir="ltr">{a.host}</span>
          <p>{a.ok ? t('setWorks', { version: a.version || '–' }) : said(a.code, a.text)}</p>
          {a.pin && (
            <>
              <dl class="facts">
                <dt>{t('setCertificateOf')}</dt><dd dir="ltr">{a.certificate}</dd>
                <dt>{t('setFingerprint')}</dt><dd dir="ltr" class="pin">{a.pin}</dd>
              </dl>
              <p>{t('setCompare')}</p>
              <button type="button" class="wide" disabled={busy} onClick={() => void send({ do: 'trust', kind: a.kind, pin: a.pin })}>{t('setTrust')}</button>
            </>
          )}
          {a.may_go && (
            <button type="button" class="wide" disabled={busy} onClick={() => void send({ do: 'decline' })}>{t('setDecline')}</button>
          )}
          {!a.ok && a.code === 'other' && a.kind === 'remote' && (
            <button type="button" class="wide" disabled={busy} onClick={() => void send({ do: 'relearn' })}>{t('setRelearn')}</button>
          )}
        </li>
      ))}
    </ul>
  )
}
