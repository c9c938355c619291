import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { RealServer } from './real.js'

const run = promisify(execFile)
const folder = join(process.cwd(), '../kotlin')
const plugin = 'org.jetbrains.kotlin:kotlin-maven-plugin:2.2.21:compile'

/** compile compiles the classes when the sources changed. It returns the class path, or why there is none. */
async function compile(): Promise<{ classpath?: string; why?: string }> {
  for (const tool of ['mvn', 'java']) {
    if (!process.env.PATH!.split(delimiter).some((dir) => existsSync(join(dir, tool)))) return { why: `${tool} is not here` }
  }
  const hash = createHash('sha256').update(readFileSync(join(folder, 'pom.xml')))
  for (const name of readdirSync(join(folder, 'src')).sort()) hash.update(readFileSync(join(folder, 'src', name)))
  const made = join(folder, 'target/made-of')
  const paths = join(folder, 'target/classpath')
  const key = hash.digest('hex')
  if (!existsSync(made) || readFileSync(made, 'utf8') !== key) {
    try {
      await run('mvn', ['-q', '-B', plugin, 'dependency:build-classpath', '-Dmdep.outputFile=' + paths], { cwd: folder, timeout: 300_000 })
    } catch (error) {
      const said = String((error as { stdout?: string }).stdout)
      if (/could not be resolved|Could not transfer|Could not find artifact|Unknown host|No plugin found/i.test(said)) return { why: 'Maven cannot fetch the Kotlin compiler' }
      throw new Error(said)
    }
    writeFileSync(made, key)
  }
  return { classpath: join(folder, 'target/classes') + delimiter + readFileSync(paths, 'utf8').trim() }
}

// The Kotlin client of doc/clients.md.
test('the Kotlin client compiles, and talks to the server', async (t) => {
  const { classpath, why } = await compile()
  if (!classpath) return t.skip(why)
  const server = await RealServer.start()
  try {
    const { stdout } = await run('java', ['-cp', classpath, 'MainKt'], {
      env: { ...process.env, HERMES_URL: `http://127.0.0.1:${server.port}/ws`, HERMES_TOKEN: RealServer.token }, timeout: 60_000, maxBuffer: 1 << 20,
    })
    const [done, approval, ...long] = stdout.split('\n')
    assert.deepEqual([done, approval], ['done: deny', 'approval: deny'])
    // Unicode characters as the demo agent counts them, without the line end that println adds.
    assert.equal([...long.join('\n').slice(0, -1)].length, 9000)
  } finally {
    await server.stop()
  }
})
