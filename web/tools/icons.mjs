// Renders the PNG icons of the page from its SVG with the tests' browser: node tools/icons.mjs
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const folder = fileURLToPath(new URL('../public/', import.meta.url))
const svg = readFileSync(folder + 'icon.svg', 'utf8')
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
for (const [name, size, whole] of [['icon-180', 180, true], ['icon-192', 192], ['icon-512', 512], ['icon-maskable-512', 512, true]]) {
  const page = await browser.newPage({ viewport: { width: size, height: size } })
  // The system cuts a maskable icon to its own shape, so it has no corners and a margin.
  const drawing = whole ? svg.replace('rx="15"', '').replace('viewBox="0 0 64 64"', 'viewBox="-8 -8 80 80" style="background:#2c56d3"') : svg
  await page.setContent(`<style>*{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${drawing}`)
  await page.screenshot({ path: `${folder}${name}.png`, omitBackground: true })
}
await browser.close()
