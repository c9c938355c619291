import DOMPurify from 'dompurify'
import { Marked, Parser, type Tokens } from 'marked'
import { language, t } from '../i18n/i18n'
import { parseBlocks, type Block, type ParsedText } from './markdownBlocks'
import { TRUSTED_OUTPUT } from './trustedTypes'
import { markLink } from './links'

/** The HTML that a message may contain. No styles, no forms, nothing that loads from elsewhere. */
const ALLOWED = {
  ALLOWED_TAGS: [
    'a', 'b', 'blockquote', 'br', 'button', 'code', 'del', 'div', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'img', 'li', 'ol', 'p', 'pre', 's',
    'span', 'strong', 'sub', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul',
  ],
  ALLOWED_ATTR: ['href', 'title', 'class', 'type', 'start', 'align', 'src', 'alt', 'target', 'rel', 'dir', 'tabindex', 'role', 'aria-label'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|tel:|data:image\/(?:png|jpeg|gif|webp);base64,)/i,
  // Any other allowed attribute must look like such a URL.
  ADD_URI_SAFE_ATTR: ['target', 'rel', 'tabindex', 'type', 'start', 'align', 'dir', 'role', 'aria-label', 'class', 'title', 'alt'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: true,
  ...TRUSTED_OUTPUT,
}

const LINK = /^(https?:|mailto:|tel:)/i
const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/

export function escapeHTML(text: string): string {
  return text.replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]!)
}

/** marked parses and renders messages. */
export const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // HTML in a message is shown as text, except the line break that tables need.
    html({ text }) {
      return text.split(/(<br\s*\/?>)/i).map((part, i) => (i % 2 ? '<br>' : escapeHTML(part))).join('')
    },
    code({ text, lang = '' }) {
      const name = /^[\w+#.-]{1,30}/.exec(lang)?.[0] ?? ''
      return `<div class="code" dir="ltr"><div class="code-head"><span>${escapeHTML(name)}</span><button type="button" class="code-copy">${escapeHTML(t('copy'))}</button></div><pre tabindex="0" role="group" aria-label="${escapeHTML(t('codeBlock'))}"><code class="${name ? 'language-' + escapeHTML(name) : ''}">${escapeHTML(text)}</code></pre></div>`
    },
    link({ href, title, tokens }) {
      const inner = this.parser.parseInline(tokens)
      if (!LINK.test(href)) return inner
      return `<a href="${escapeHTML(href)}"${title ? ` title="${escapeHTML(title)}"` : ''} target="_blank" rel="noopener noreferrer">${inner}</a>`
    },
    // A remote picture would tell a stranger that the message is being read, so it becomes a link.
    image({ href, text }) {
      if (PICTURE.test(href)) return `<img src="${href}" alt="${escapeHTML(text)}">`
      return LINK.test(href) ? `<a href="${escapeHTML(href)}" target="_blank" rel="noopener noreferrer">${escapeHTML(text || href)}</a>` : escapeHTML(text)
    },
    table(token: Tokens.Table) {
      const cells = (row: Tokens.TableCell[]) => row.map((cell) => this.tablecell(cell)).join('')
      const body = token.rows.map((row) => `<tr>${cells(row)}</tr>`).join('')
      return `<div class="table" tabindex="0" role="group" aria-label="${escapeHTML(t('table'))}"><table><thead><tr>${cells(token.header)}</tr></thead><tbody>${body}</tbody></table></div>`
    },
    checkbox({ checked }) {
      return `<span class="check" role="img" aria-label="${escapeHTML(t(checked ? 'checked' : 'unchecked'))}">${checked ? '☑' : '☐'}</span> `
    },
  },
})

if (DOMPurify.isSupported) DOMPurify.addHook('afterSanitizeAttributes', markLink) // unit tests have no DOM

/** Rendered blocks: all but the last of a growing reply. */
const cache = new Map<string, string>()
const CACHE_SIZE = 1000

/**
 * blockHTML returns a block as safe HTML. `around` is the context that the block's meaning depends
 * on. A block that can't be rendered is shown as it was written.
 */
function blockHTML(block: Block, around: string): string {
  const key = around + block.raw
  const made = cache.get(key) ?? DOMPurify.sanitize(renderBlock(block), ALLOWED)
  cache.delete(key) // move it to the end, where the newest are
  cache.set(key, made)
  if (cache.size > CACHE_SIZE) cache.delete(cache.keys().next().value!)
  return made
}

/** renderBlock returns a block as HTML that isn't sanitized yet. */
export function renderBlock(block: Block): string {
  if (block.token) {
    try {
      return new Parser(marked.defaults).parse([block.token])
    } catch {
      // Show it as it was written.
    }
  }
  return `<div class="as-written">${escapeHTML(block.raw.trim())}</div>`
}

/** A text as safe HTML, with what is needed to continue when it grows. */
export interface RenderedText {
  readonly html: readonly string[]
  readonly read: ParsedText
  readonly language: string
}

/**
 * renderBlocks returns a text as safe HTML blocks. When a reply grows, only its last blocks change.
 * The others are neither parsed nor drawn again.
 */
export function renderBlocks(text: string, before?: RenderedText): RenderedText {
  const now = language.peek()
  const parts = parseBlocks(text, marked.defaults, before?.read)
  return { html: parts.blocks.map((block) => blockHTML(block, now + parts.links)), read: parts, language: now }
}
