import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePairingLink } from '../src/index.js'

test('a pairing link holds address, code and fingerprint', () => {
  const links: [string, object][] = [
    ['https://agent.example.com/#pair=7KQ4-M2XD', { url: 'wss://agent.example.com/ws', pair: '7KQ4-M2XD' }],
    [' http://192.168.1.5:8787/#pair=7KQ4-M2XD\n', { url: 'ws://192.168.1.5:8787/ws', pair: '7KQ4-M2XD' }],
    ['https://a.example.com#pair=X&path=%2Fmobile', { url: 'wss://a.example.com/mobile', pair: 'X' }],
    ['HTTPS://a.example.com:444/hermes/#path=/m&pair=X', { url: 'wss://a.example.com:444/hermes/m', pair: 'X' }],
    ['https://[::1]:8787/#pair=X&fingerprint=AB%3ACD', { url: 'wss://[::1]:8787/ws', pair: 'X', fingerprint: 'AB:CD' }],
    ['https://a.example.com/#pair=X&other=1', { url: 'wss://a.example.com/ws', pair: 'X' }],
  ]
  for (const [text, link] of links) assert.deepEqual(parsePairingLink(text), link, text)
})

test('other texts are not pairing links', () => {
  for (const text of ['', '7KQ4-M2XD', 'https://a.example.com/', 'https://a.example.com/#pair=', 'https://a.example.com/?pair=X', 'ftp://a.example.com/#pair=X',
    'javascript:alert(1)#pair=X', 'https://#pair=X', 'https://me@a.example.com/#pair=X', 'https://a.example.com/#pair=%', 'https://a.example.com/#pair=X&path=m',
    'https://a.example.com/?x=1#pair=X', 'https://a b.example.com/#pair=X']) {
    assert.equal(parsePairingLink(text), undefined, text)
  }
})
