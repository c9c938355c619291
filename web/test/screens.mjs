// Takes the pictures of doc/screens: ten screens in light and dark, on a phone and on a wide screen, against the built server.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const out = root + '.cache/screens.mjs'
rmSync(out, { force: true })
await esbuild.build({ entryPoints: [root + 'test/screens.ts'], outfile: out, bundle: true, platform: 'node', format: 'esm', packages: 'external', target: 'node20', logLevel: 'warning' })
process.exit(spawnSync(process.execPath, [out], { cwd: root, stdio: 'inherit' }).status ?? 1)
