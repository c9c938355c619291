import { t, type Key } from '../i18n/i18n'

const messages: Record<string, Key> = {
  auth_failed: 'errorAuth', forbidden: 'errorForbidden', too_big: 'errorTooBig', rate_limited: 'errorRate', no_space: 'errorNoSpace', internal: 'errorInternal',
}

/**
 * errorText describes a known error in the user's language. It returns the message of any other
 * error.
 */
export function errorText(error: unknown): string {
  const { code = '', name = '', message } = error as Error & { code?: string }
  if (name === 'UnsupportedError') return t('errorUnsupported')
  if (name === 'LinkLostError') return t('errorLinkLost')
  if (name === 'TimeoutError') return t('errorTimeout')
  if (name === 'CallError') return message // the gateway's or server's own explanation
  const known = messages[code]
  return known ? t(known) : message || String(error)
}
