// Bundles and runs a program of this folder: node test/bundled.mjs screens
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const name = process.argv[2]
mkdirSync(join(root, '.cache'), { recursive: true })
const folder = mkdtempSync(join(root, '.cache/run-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const out = join(folder, name + '.mjs')
await esbuild.build({ entryPoints: [join(root, 'test', name + '.ts')], outfile: out, bundle: true, platform: 'node', format: 'esm', packages: 'external', target: 'node20', logLevel: 'warning' })
process.exit(spawnSync(process.execPath, [out], { cwd: root, stdio: 'inherit' }).status ?? 1)
