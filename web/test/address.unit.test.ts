import assert from 'node:assert/strict'
import { it } from 'node:test'
import { socketAddress, otherServerPage, mediaLink, parseAddress, parseInvitation, takePairingLink } from '../src/conversation/address'

let shown = ''
/** at pretends that the page is served at a URL. */
function at(href: string, path = '/ws'): void {
  Object.assign(globalThis, {
    location: new URL(href),
    document: { querySelector: () => ({ content: path }) },
    history: { replaceState: (_: unknown, __: string, url: string) => (shown = url) },
  })
}

it("finds its own server, also below a proxy's path", () => {
  at('https://agent.example.com/')
  assert.equal(socketAddress(), 'wss://agent.example.com/ws')
  at('http://127.0.0.1:8787/')
  assert.equal(socketAddress(), 'ws://127.0.0.1:8787/ws')
  at('https://example.com/hermes/', '/agent/ws')
  assert.equal(socketAddress(), 'wss://example.com/hermes/agent/ws')
})

it('removes the code from the address bar immediately', () => {
  at('https://agent.example.com/#pair=7KQ4-M2XD&path=%2Fother')
  assert.deepEqual(takePairingLink(), { pair: '7KQ4-M2XD', url: 'wss://agent.example.com/other' })
  assert.equal(shown, '/')
  at('https://agent.example.com/?x=1#nothing')
  assert.equal(takePairingLink(), undefined)
  assert.equal(shown, '/?x=1')
})

it('parses pairing links and codes', () => {
  at('https://agent.example.com/')
  assert.deepEqual(parseInvitation(' https://agent.example.com/#pair=7KQ4-M2XD '), { pair: '7KQ4-M2XD', url: 'wss://agent.example.com/ws' })
  assert.deepEqual(parseInvitation('7kq4-m2xd'), { pair: '7KQ4-M2XD', url: 'wss://agent.example.com/ws' })
  for (const text of ['', 'hello', 'https://agent.example.com/', 'javascript:alert(1)']) assert.equal(parseInvitation(text), undefined, text)
})

it('parses addresses as users type them', () => {
  at('https://agent.example.com/')
  assert.equal(parseAddress('agent.example.com'), 'wss://agent.example.com/ws')
  assert.equal(parseAddress('ws://10.0.0.5:8787'), 'ws://10.0.0.5:8787/ws')
  assert.equal(parseAddress('wss://10.0.0.5/x'), 'wss://10.0.0.5/x')
  at('http://localhost:8787/')
  assert.equal(parseAddress('localhost:8787'), 'ws://localhost:8787/ws')
  for (const text of ['', 'ftp://x', 'https://user:secret@x/', 'javascript:alert(1)', 'a b']) assert.equal(parseAddress(text), undefined, text)
})

it('links to the page of another server', () => {
  at('https://agent.example.com/')
  assert.equal(otherServerPage('wss://agent.example.com/ws'), '')
  assert.equal(otherServerPage('wss://other.example.com/ws'), 'https://other.example.com/')
})

it("downloads files from the page's own origin", () => {
  at('https://example.com/hermes/')
  assert.equal(mediaLink('http://10.0.0.5:8787/media/abc?x#y'), 'https://example.com/hermes/media/abc')
  assert.equal(mediaLink('javascript:alert(1)'), '')
})
