import { visible, whole } from '@hermes-mobile/sdk/visible'

/**
 * A host name, and what follows it in a URL. Its last part consists of letters, or it is an IPv4
 * address.
 */
const NAME = /(?<![\p{L}\p{N}\p{M}_.\u3002\uff0e\uff61-])((?:[\p{L}\p{N}][\p{L}\p{N}\p{M}_-]*[.\u3002\uff0e\uff61])+(?:xn--[a-z0-9-]+|[\p{L}\p{M}]{2,})|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?(?:[/?#\\]\S*)?/gu

/**
 * realHost returns the host of a link if its text names another one, or if its URL starts with
 * another one, as in https://bank.example@evil.example. It is empty if nothing misleads.
 */
export function realHost(said: string, href: string): string {
  const target = parse(href)
  if (!target) return ''
  const host = target.protocol === 'mailto:' ? domain(target.pathname) : target.hostname
  if (!host) return ''
  if (target.username || target.password) return host
  const bare = (name: string) => name.replace(/^www\./, '').replace(/\.$/, '')
  const named: string[] = []
  let forged = false
  const text = said.replace(/\b(?:https?:\/\/|mailto:)\S+/gi, (address) => {
    const url = parse(address)
    forged ||= Boolean(url?.username || url?.password)
    named.push(url ? (url.protocol === 'mailto:' ? domain(url.pathname) : url.hostname) : address)
    return ' '
  })
  if (forged) return host
  for (const [, name] of text.matchAll(NAME)) named.push(parse('https://' + name)?.hostname ?? name!)
  return named.some((name) => name && bare(name) !== bare(host)) ? host : ''
}

function parse(address: string): URL | undefined {
  return URL.canParse(address) ? new URL(address) : undefined
}

const domain = (mail: string) => parse('https://' + mail.slice(mail.lastIndexOf('@') + 1))?.hostname ?? ''

/**
 * markLink reveals what a link is: it marks invisible characters in its text, and adds the real
 * host if the text names another one.
 */
export function markLink(node: Node): void {
  if (node.nodeName !== 'A') return
  const link = node as HTMLAnchorElement
  const said = link.textContent
  const texts = link.ownerDocument.createNodeIterator(link, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode() as Text | null; text; text = texts.nextNode() as Text | null) {
    const shown = visible(text.data)
    if (shown.hidden) text.data = whole(shown)
  }
  if (link.title) link.title = whole(visible(link.title))
  const host = realHost(said, link.getAttribute('href') ?? '')
  if (!host || link.lastElementChild?.className === 'link-host') return
  const span = link.ownerDocument.createElement('span')
  span.className = 'link-host'
  span.dir = 'ltr'
  span.textContent = ` (${host})`
  link.append(span)
}
