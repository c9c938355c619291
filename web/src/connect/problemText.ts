import { t, type Key } from '../words/words'
import type { Code } from './api'

const words: Partial<Record<Code, Key>> = {
  missing: 'setMissing', not_https: 'setNotHttps', lost: 'setLost', passphrase: 'setWrongPassphrase', unreachable: 'setUnreachable', no_name: 'setNoName', slow: 'setSlow',
  certificate: 'setCertificate', key_changed: 'setKeyChanged', sign_in: 'setSignIn', other: 'setOther', not_tried: 'setNotTried', plain_http: 'setPlainHttp',
}

/** said gives a problem in the person's language where there are words for it. */
export function said(code: Code | undefined, text = ''): string {
  const key = code && words[code]
  return key ? t(key) : text
}
