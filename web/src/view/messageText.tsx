import { memo } from 'preact/compat'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { language, t } from '../i18n/i18n'
import { copyText } from './clipboard'
import { renderBlocks, type RenderedText } from './markdown'

/** Block is a paragraph, list, table, or piece of code. It redraws only when its HTML changes. */
const Block = memo(function Block({ html, finished }: { html: string; finished: boolean }) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const codes = finished ? [...(ref.current?.querySelectorAll<HTMLElement>('code[class^=language-]') ?? [])] : []
    if (codes.length > 0) void import('./highlight').then(({ highlight }) => codes.forEach(highlight)).catch(() => {}) // it stays without colours
  }, [html, finished])
  return <div class="block" dir="auto" ref={ref} dangerouslySetInnerHTML={{ __html: html }} />
})

/** MessageText shows a message with formatting. */
export function MessageText({ text, finished }: { text: string; finished: boolean }) {
  const lang = language.value
  const before = useRef<RenderedText>(undefined)
  const { html: parts } = useMemo(() => (before.current = renderBlocks(text, finished ? undefined : before.current)), [text, lang, finished])
  return (
    <div class="text" onClick={copyCode}>
      {parts.map((html, i) => <Block key={i} html={html} finished={finished || i < parts.length - 1} />)}
    </div>
  )
}

/** copyCode copies a piece of code. */
function copyCode(event: MouseEvent): void {
  const button = (event.target as Element).closest('button.code-copy')
  const code = button?.closest('.code')?.querySelector('code')
  if (!button || !code) return
  void copyText(code.textContent ?? '').then((copied) => {
    button.textContent = t(copied ? 'copied' : 'notCopied')
    setTimeout(() => (button.textContent = t('copy')), 2000)
  })
}
