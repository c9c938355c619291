import { t, type Key } from '../i18n/i18n'
import type { ProblemCode } from './api'

const messages: Partial<Record<ProblemCode, Key>> = {
  missing: 'connectMissing', not_https: 'connectNotHttps', lost: 'connectCredentialsLost', passphrase: 'connectWrongPassphrase', unreachable: 'connectUnreachable', no_name: 'connectUnknownHost', slow: 'connectTimeout',
  certificate: 'connectUntrusted', key_changed: 'connectKeyChanged', sign_in: 'connectRejected', other: 'connectOtherGateway', not_tried: 'connectNotTried', plain_http: 'connectPlainHttp',
}

/**
 * problemText returns a problem in the user's language, or the program's own text for an unknown
 * code.
 */
export function problemText(code: ProblemCode | undefined, text = ''): string {
  const key = code && messages[code]
  return key ? t(key) : text
}
