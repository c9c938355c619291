// Prints the compressed size of the first screen, and fails if it exceeds the limit:
// node test/size.mjs FOLDER
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const LIMIT = 120 * 1024
const folder = process.argv[2]
const index = readFileSync(join(folder, 'index.html'), 'utf8')
const first = ['index.html', ...[...index.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((found) => found[1])].filter((name) => !/png$/.test(name))
let total = 0
for (const name of first) total += gzipSync(readFileSync(join(folder, name)), { level: 9 }).length
console.log(`first screen: ${(total / 1024).toFixed(1)} KiB compressed in ${first.length} files, at most ${LIMIT / 1024}`)
if (total > LIMIT || first.length < 4) process.exit(1)
