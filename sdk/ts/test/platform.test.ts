import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

/** Globals of browsers and Node that React Native may lack. */
const missing = [
  'window', 'document', 'navigator', 'location', 'localStorage', 'indexedDB', 'WebSocket', 'fetch', 'crypto', 'Blob', 'File', 'URL', 'Event', 'EventTarget', 'AudioContext',
  'AudioWorkletNode', 'HTMLElement', 'MessageEvent', 'structuredClone', 'TextDecoder', 'TextEncoder', 'Buffer', 'process', 'queueMicrotask',
]

for (const entry of ['index', 'mic', 'avatar', 'uploads']) {
  test(`${entry} can be imported without the globals of a browser`, async () => {
    const script = `const say = process.stdout.write.bind(process.stdout)
      for (const name of ${JSON.stringify(missing)}) delete globalThis[name]
      say(Object.keys(await import('./dist/${entry}.js')).join())`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    assert.match(stdout, /open|recordWav|avatarFrame|openUploads/)
  })
}
