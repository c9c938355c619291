import { t, type Key } from '../i18n/i18n'

const messages: Record<string, Key> = {
  auth_failed: 'errorAuth', forbidden: 'errorForbidden', too_big: 'errorTooBig', rate_limited: 'errorRate', no_space: 'errorNoSpace', internal: 'errorInternal',
}

/** explain says what went wrong in the person's language where it is a known case, else in the words it came with. */
export function errorText(error: unknown): string {
  const { code = '', name = '', message } = error as Error & { code?: string }
  if (name === 'UnsupportedError') return t('errorUnsupported')
  if (name === 'LinkLostError') return t('errorLinkLost')
  if (name === 'TimeoutError') return t('errorTimeout')
  if (name === 'CallError') return message // whoever answered says what was wrong
  const known = messages[code]
  return known ? t(known) : message || String(error)
}
