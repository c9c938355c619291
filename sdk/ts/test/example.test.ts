import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { RealServer } from './real.js'

// The program of doc/clients.md, which imports the package by its name as an app does.
test('the example of the documentation works', async () => {
  const server = await RealServer.start()
  const folder = mkdtempSync(join(tmpdir(), 'hm-sdk-example-'))
  try {
    const { code } = JSON.parse(await server.command('pair', '--json')) as Record<string, string>
    // The second time it has its own token.
    for (const pair of [code!, '']) {
      const { stdout } = await promisify(execFile)(process.execPath, [join(process.cwd(), 'build/example/client.mjs')], {
        cwd: folder, env: { ...process.env, HERMES_URL: `ws://127.0.0.1:${server.port}`, HERMES_PAIR: pair }, timeout: 60_000,
      })
      assert.equal(stdout, 'You said: What is the weather?\n')
    }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})
