// Bundles and runs the tests whose names contain one of the arguments, or all:
// node test/run.mjs unit
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const words = process.argv.slice(2)
const tests = readdirSync(join(root, 'test')).filter((name) => name.endsWith('.test.ts') && (words.length === 0 || words.some((word) => name.includes(word))))
mkdirSync(join(root, '.cache'), { recursive: true })
const out = mkdtempSync(join(root, '.cache/test-')) // a new one, because the same tests may run twice at a time
process.on('exit', () => rmSync(out, { recursive: true, force: true }))
await esbuild.build({
  entryPoints: tests.map((name) => join(root, 'test', name)),
  outdir: out,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: false,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  target: 'node20',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  sourcemap: 'inline',
  alias: { '@hermes-mobile/sdk': join(root, '../sdk/ts/src') },
  loader: { '.js': 'js' },
  logLevel: 'warning',
})
const files = tests.map((name) => join(out, name.replace('.ts', '.mjs')))
const { status } = spawnSync(process.execPath, ['--enable-source-maps', '--test', '--test-concurrency=2', '--test-reporter=' + join(root, 'test/reporter.mjs'), ...files], { cwd: root, stdio: 'inherit' })
process.exit(status ?? 1)
