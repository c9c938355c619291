import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import php from 'highlight.js/lib/languages/php'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import DOMPurify from 'dompurify'
import { TRUSTED_OUTPUT } from './trustedTypes'

const languages = { bash, c, cpp, csharp, css, diff, go, ini, java, javascript, json, kotlin, php, python, ruby, rust, sql, swift, typescript, xml, yaml }
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language)

/** Longer code takes more time than the colours are worth. */
const MAX_LENGTH = 50_000

/** highlight colours a piece of code by the language in its class. */
export function highlight(code: HTMLElement): void {
  const language = code.className.replace('language-', '')
  const text = code.textContent ?? ''
  if (!hljs.getLanguage(language) || text.length > MAX_LENGTH || code.childElementCount > 0) return
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true })
  code.innerHTML = DOMPurify.sanitize(value, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'], ...TRUSTED_OUTPUT })
}
