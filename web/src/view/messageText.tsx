import { memo } from 'preact/compat'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { language, t } from '../words/words'
import { copy } from './copy'
import { blocks, type Blocks } from './markdown'

/** Block is one paragraph, list, table or piece of code. It is touched only when its HTML changes. */
const Block = memo(function Block({ html, finished }: { html: string; finished: boolean }) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const codes = finished ? [...(ref.current?.querySelectorAll<HTMLElement>('code[class^=language-]') ?? [])] : []
    if (codes.length > 0) void import('./highlight').then(({ highlight }) => codes.forEach(highlight)).catch(() => {}) // it stays as it is
  }, [html, finished])
  return <div class="block" dir="auto" ref={ref} dangerouslySetInnerHTML={{ __html: html }} />
})

/** Text shows a message with its formatting. */
export function Text({ text, finished }: { text: string; finished: boolean }) {
  const lang = language.value
  const before = useRef<Blocks>(undefined)
  const { html: parts } = useMemo(() => (before.current = blocks(text, finished ? undefined : before.current)), [text, lang, finished])
  return (
    <div class="text" onClick={press}>
      {parts.map((html, i) => <Block key={i} html={html} finished={finished || i < parts.length - 1} />)}
    </div>
  )
}

/** press copies a piece of code. */
function press(event: MouseEvent): void {
  const button = (event.target as Element).closest('button.code-copy')
  const code = button?.closest('.code')?.querySelector('code')
  if (!button || !code) return
  void copy(code.textContent ?? '').then((copied) => {
    button.textContent = t(copied ? 'copied' : 'notCopied')
    setTimeout(() => (button.textContent = t('copy')), 2000)
  })
}
