import { useEffect } from 'preact/hooks'
import { count, t } from '../words/words'
import type { Finding } from './api'
import { examine, examining, report } from './state'

const words = { error: 'ownError', warning: 'ownWarning', note: 'ownNote' } as const
const tones = { error: 'bad', warning: 'wait', note: '' } as const

/** Doctor is what is wrong, and what to do about it. */
export function Doctor() {
  const found = report.value
  useEffect(() => {
    if (!report.peek()) void examine()
  }, [])
  return (
    <>
      <div class="own-actions"><button type="button" class="primary" disabled={examining.value} onClick={() => void examine()}>{t(examining.value ? 'ownExamining' : 'ownExamine')}</button></div>
      <p class={found?.well ? 'own-state good' : 'hidden'} role="status">{examining.value ? t('ownExamining') : found?.well ? t('ownWell') : found ? count('ownTrouble', found.findings.length) : ''}</p>
      {found && (
        <>
          <ul class="own-rows">{found.findings.map((finding, i) => <Row key={finding.code + (finding.about ?? '') + i} finding={finding} />)}</ul>
          <details>
            <summary>{t('ownChecked')}</summary>
            <ul class="own-checked" lang="en">{found.checked.map((line) => <li key={line} dir="auto">{line}</li>)}</ul>
          </details>
        </>
      )}
    </>
  )
}

function Row({ finding }: { finding: Finding }) {
  return (
    <li class="own-row">
      <div class="own-row-head"><span class={'own-badge ' + tones[finding.severity]}>{t(words[finding.severity])}</span><code dir="ltr">{finding.code}</code></div>
      <p lang="en" dir="auto">{finding.text}</p>
      {finding.do && <p dir="auto"><strong>{t('ownDo')}</strong> <span lang="en">{finding.do}</span></p>}
      {finding.see && <p class="quiet">{t('ownSee')} <code dir="ltr">{finding.see}</code></p>}
    </li>
  )
}
