import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'

it('styles use only defined variables', () => {
  const styles = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.css')).map((name) => readFileSync(join('src', name), 'utf8')).join('\n')
  const defined = new Set([...styles.matchAll(/(--[\w-]+)\s*:/g)].map((found) => found[1]))
  const used = new Set([...styles.matchAll(/var\((--[\w-]+)\)/g)].map((found) => found[1]))
  assert.ok(used.size > 10)
  assert.deepEqual([...used].filter((name) => !defined.has(name)), [])
})
