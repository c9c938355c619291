import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  root: here('.'),
  base: './', // a proxy may serve the page below a path
  cacheDir: here('.cache/vite'),
  resolve: {
    alias: [
      { find: /^@hermes-mobile\/sdk$/, replacement: here('../sdk/ts/src/index.ts') },
      { find: /^@hermes-mobile\/sdk\/(.*)$/, replacement: here('../sdk/ts/src/$1.ts') },
    ],
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: here('../internal/web/dist'),
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome109', 'firefox115', 'safari16'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      input: { index: here('index.html'), admin: here('admin.html') },
      output: { entryFileNames: 'assets/[name]-[hash].js', chunkFileNames: 'assets/[name]-[hash].js', assetFileNames: 'assets/[name]-[hash][extname]' },
    },
  },
})
