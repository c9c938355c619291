import { useEffect } from 'preact/hooks'
import { count, t } from '../i18n/i18n'
import type { Issue } from './api'
import { runDoctor, doctorRunning, report } from './state'

const words = { error: 'adminError', warning: 'adminWarning', note: 'adminNote' } as const
const tones = { error: 'bad', warning: 'wait', note: '' } as const

/** Doctor lists the issues and what to do about each. */
export function Doctor() {
  const found = report.value
  useEffect(() => {
    if (!report.peek()) void runDoctor()
  }, [])
  return (
    <>
      <div class="admin-actions"><button type="button" class="primary" disabled={doctorRunning.value} onClick={() => void runDoctor()}>{t(doctorRunning.value ? 'adminChecking' : 'adminRunDoctor')}</button></div>
      <p class={found?.well ? 'admin-state good' : 'hidden'} role="status">{doctorRunning.value ? t('adminChecking') : found?.well ? t('adminNoIssues') : found ? count('adminIssues', found.findings.length) : ''}</p>
      {found && (
        <>
          <ul class="admin-rows">{found.findings.map((finding, i) => <Row key={finding.code + (finding.about ?? '') + i} finding={finding} />)}</ul>
          <details>
            <summary>{t('adminChecks')}</summary>
            <ul class="admin-checked" lang="en">{found.checked.map((line) => <li key={line} dir="auto">{line}</li>)}</ul>
          </details>
        </>
      )}
    </>
  )
}

function Row({ finding }: { finding: Issue }) {
  return (
    <li class="admin-row">
      <div class="admin-row-head"><span class={'admin-badge ' + tones[finding.severity]}>{t(words[finding.severity])}</span><code dir="ltr">{finding.code}</code></div>
      <p lang="en" dir="auto">{finding.text}</p>
      {finding.do && <p dir="auto"><strong>{t('adminDo')}</strong> <span lang="en">{finding.do}</span></p>}
      {finding.see && <p class="muted">{t('adminSee')} <code dir="ltr">{finding.see}</code></p>}
    </li>
  )
}
