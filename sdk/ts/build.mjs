// Bundles the tests and the example for Node, and the core as a web page would, and prints the size of the core.
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const LIMIT = 13 * 1024

rmSync('build', { recursive: true, force: true })
await build({
  entryPoints: readdirSync('test').filter((name) => name.endsWith('.test.ts')).map((name) => 'test/' + name),
  bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external', sourcemap: 'inline', outdir: 'build/test',
  outExtension: { '.js': '.mjs' }, logLevel: 'warning',
})
// Not bundled: the example imports the package by its name, as an app does.
await build({ entryPoints: ['example/client.ts'], format: 'esm', target: 'node20', outfile: 'build/example/client.mjs', logLevel: 'warning' })
const { outputFiles } = await build({ entryPoints: ['src/index.ts'], bundle: true, minify: true, format: 'esm', target: 'es2022', write: false })
const size = gzipSync(outputFiles[0].contents, { level: 9 }).length
writeFileSync('build/hermes-mobile.min.js', outputFiles[0].contents)
console.log(`sdk: the core has ${size} bytes gzipped, ${LIMIT} are allowed`)
if (size > LIMIT) process.exit(1)
