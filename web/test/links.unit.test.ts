import assert from 'node:assert/strict'
import { it } from 'node:test'
import { realHost } from '../src/view/links'

it('shows the real host of a link whose text names another one', () => {
  for (const [said, href, host] of [
    ['https://bank.example', 'https://evil.example', 'evil.example'],
    ['bank.example', 'https://evil.example/bank.example', 'evil.example'],
    ['Log in at www.bank.example/login now', 'https://evil.example', 'evil.example'],
    ['//bank.example', 'https://evil.example', 'evil.example'],
    ['https:∕∕bank.example', 'https://evil.example', 'evil.example'],
    ['bank。example', 'https://evil.example', 'evil.example'],
    ['банк.рф', 'https://evil.example', 'evil.example'],
    ['bank.example', 'https://bank.example.evil.example', 'bank.example.evil.example'],
    ['bank.example', 'https://login.bank.example', 'login.bank.example'],
    ['https://bank.example', 'https://bank.example@evil.example', 'evil.example'],
    ['https://bank.example@evil.example', 'https://evil.example', 'evil.example'],
    ['Press here', 'https://bank.example@evil.example', 'evil.example'],
    ['Press here', 'https://bank.example:x@evil.example/', 'evil.example'],
    ['192.168.0.1', 'https://10.0.0.1', '10.0.0.1'],
    ['help@bank.example', 'mailto:help@evil.example', 'evil.example'],
    ['mailto:help@bank.example', 'https://evil.example', 'evil.example'],
    ['https://bank.example', 'mailto:x@evil.example', 'evil.example'],
    ['apple.com', 'https://аpple.com', 'xn--pple-43d.com'],
    ['https://bank.example\\@x', 'https://evil.example', 'evil.example'],
    ['https://%', 'https://evil.example', 'evil.example'],
  ] as const) assert.equal(realHost(said, href), host, `[${said}](${href})`)
})

it("adds nothing to a link that doesn't mislead", () => {
  for (const [said, href] of [
    ['https://bank.example/a.b', 'https://bank.example/a.b'],
    ['bank.example', 'https://www.bank.example/x'],
    ['www.bank.example/a.example?b=c.example', 'https://bank.example'],
    ['the documentation', 'https://bank.example'],
    ['version 1.2.3', 'https://bank.example'],
    ['v1.2', 'https://bank.example'],
    ['Bank.Example', 'https://bank.example'],
    ['https://bank.example:8443/x', 'https://bank.example:8443/x'],
    ['пример.рф', 'https://xn--e1afmkfd.xn--p1ai/'],
    ['help@bank.example', 'mailto:help@bank.example'],
    ['bank.example', 'tel:+123'],
    ['bank.example', ''],
    ['bank.example', 'nonsense'],
  ] as const) assert.equal(realHost(said, href), '', `[${said}](${href})`)
})

it('handles a long text quickly', () => {
  const begun = Date.now()
  for (const piece of ['a.', 'a-', '1.', 'https://', 'a.b/', '.', 'https://a ', 'a.bc ', 'a_', '@', '\u0301.']) realHost(piece.repeat(50_000), 'https://evil.example')
  assert.ok(Date.now() - begun < 5000)
})
