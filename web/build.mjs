// Builds the page into internal/web/dist or the given folder, and then the service worker, which
// lists the page's files.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'
import { build } from 'vite'

const root = fileURLToPath(new URL('.', import.meta.url))
const out = resolve(process.argv[2] ?? join(root, '../internal/web/dist'))
await build({ configFile: join(root, 'vite.config.ts'), logLevel: 'warn', build: { outDir: out } })

/** The service worker caches every file except the admin UI's, which always needs the server. */
const kept = (file) => file !== 'admin.html' && !file.startsWith('assets/admin-')
const files = readdirSync(out, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(out, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
  .filter(kept)
  .sort()
const version = createHash('sha256')
for (const file of files) version.update(file + '\0').update(readFileSync(join(out, file)))
await esbuild.build({
  entryPoints: [join(root, 'src/worker/serviceWorker.ts')],
  outfile: join(out, 'sw.js'),
  bundle: true,
  minify: true,
  target: 'es2022',
  logLevel: 'warning',
  define: {
    VERSION: JSON.stringify(version.digest('hex').slice(0, 16)),
    FILES: JSON.stringify(['./', ...files.filter((file) => file !== 'index.html').map((file) => './' + file)]),
  },
})
