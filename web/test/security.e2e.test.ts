import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { noBrowser, online, serverRig, until, type Visitor } from './rig'
import { scripted } from './scriptedServer'

/** Attacks in texts. RUN stands for a script that would show that it ran. */
const html = [
  '<script>RUN</script>', '<script src="data:text/javascript,RUN"></script>', '<img src=x onerror="RUN">', '<img src=x onerror=RUN>', '<svg onload="RUN">',
  '<svg><script>RUN</script></svg>', '<svg><animate onbegin="RUN" attributeName=x dur=1s>', '<body onload="RUN">', '<iframe src="javascript:RUN"></iframe>',
  '<iframe srcdoc="<script>parent.RUN</script>"></iframe>', '<object data="javascript:RUN"></object>', '<embed src="javascript:RUN">',
  '<math><mtext></form><form><mglyph><style></math><img src onerror="RUN">', '<details open ontoggle="RUN">x</details>', '<video><source onerror="RUN"></video>',
  '<audio src=x onerror="RUN"></audio>', '<input autofocus onfocus="RUN">', '<select autofocus onfocus="RUN"></select>', '<textarea autofocus onfocus="RUN"></textarea>',
  '<a href="javascript:RUN">x</a>', '<a href="&#106;avascript:RUN">x</a>', '<a href="java\tscript:RUN">x</a>', '<form action="javascript:RUN"><button>x</button></form>',
  '<button formaction="javascript:RUN">x</button>', '<meta http-equiv="refresh" content="0;url=javascript:RUN">', '<base href="javascript:RUN//">',
  '<link rel="stylesheet" href="data:text/css,*{background:red}">', '<style>@import "https://evil.example/x.css"</style>', '<div style="background:url(https://evil.example/x)">x</div>',
  '<noscript><p title="</noscript><img src=x onerror=RUN>">', '<template><script>RUN</script></template>', '<table background="https://evil.example/x">', '<marquee onstart="RUN">x</marquee>',
  '"><script>RUN</script>', "'><img src=x onerror=RUN>", '--><script>RUN</script>', ']]><script>RUN</script>', '</textarea><script>RUN</script>', '</title><script>RUN</script>',
  '<scr<script>ipt>RUN</scr</script>ipt>', '<img/src/onerror=RUN>', '<IMG SRC=x OnErRoR=RUN>', '<svg/onload=RUN//', '\u0000<script>RUN</script>', '<a id=app href=x>clobber</a>',
]
const markdown = [
  '[x](javascript:RUN)', '[x](JaVaScRiPt:RUN)', '[x]( javascript:RUN)', '[x](&#106;avascript:RUN)', '[x](java&#10;script:RUN)', '[x](data:text/html,<script>RUN</script>)',
  '[x](vbscript:RUN)', '[x](<javascript:RUN>)', '[x][r]\n\n[r]: javascript:RUN', '![x](javascript:RUN)', '![x" onerror="RUN](x)', '![x](x"onerror="RUN)', '<javascript:RUN>',
  '[x](https://example.com "\\" onmouseover=\\"RUN")', '[<img src=x onerror=RUN>](https://example.com)', '![](https://evil.example/track.png)', '![](//evil.example/track.png)',
  '![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)', '```"><script>RUN</script>\nx\n```', '```js onload=RUN\n</code></pre><script>RUN</script>\n```', '`<script>RUN</script>`',
  '# <img src=x onerror=RUN>', '> <script>RUN</script>', '- <svg onload=RUN>', '| <img src=x onerror=RUN> |\n|---|\n| <script>RUN</script> |', '<br onclick=RUN>', '<br/><img src=x onerror=RUN>',
  '***<script>RUN</script>***', '~~<svg onload=RUN>~~', 'https://example.com/"onmouseover="RUN', 'a@b.c"onclick="RUN', '[x](https://x.example/`onclick=RUN`)', '- [x] <img src=x onerror=RUN>',
]
const scripts = ['window.ran++', 'top.ran=1', 'alert(1)', 'self["ra"+"n"]=1', 'eval(`ran=1`)']
const corpus = [...html, ...markdown].flatMap((template, i) => [0, 1, 2].map((turn) => template.replaceAll('RUN', scripts[(i + turn) % scripts.length]!)))

describe('hostile texts', { skip: noBrowser }, () => {
  const rig = serverRig()

  /** hostile connects the page to a server that sends `frames`. */
  const hostile = (visitor: Visitor, frames: object[], ready: object = {}) =>
    scripted(visitor, { ready: { session: corpus[0], server: corpus[1], resume: { epoch: 'e', from: 1, to: frames.length, lost: false }, ...ready }, frames: frames.map((frame, i) => ('seq' in frame ? { ...frame, seq: i + 1 } : frame)), answer: (frame) => {
      if (frame.t === 'call') return [{ t: 'result', id: frame.id, result: { devices: corpus.slice(0, 20).map((text, i) => ({ id: 'd' + i, name: text, connected: true, seen_at: text })) } }]
      return []
    } })

  /** inspect looks for anything that must not be in the page. */
  async function inspect(page: Page): Promise<string[]> {
    return page.evaluate(() => {
      const found: string[] = []
      const { ran } = window as unknown as { ran: number }
      if (ran) found.push('a script ran')
      for (const element of document.querySelectorAll('#app *')) {
        for (const { name, value } of element.attributes) {
          if (name.startsWith('on')) found.push(`${element.tagName} has ${name}`)
          if (/^(href|src|action|formaction|data|srcdoc)$/.test(name) && /^\s*(javascript|vbscript|data:text)/i.test(value)) found.push(`${element.tagName} ${name}=${value}`)
          if (name === 'style' && /url\(/.test(value)) found.push(`style ${value}`)
        }
        if (/^(SCRIPT|OBJECT|EMBED|BASE|META|LINK|STYLE|TEMPLATE|FORM)$/.test(element.tagName) && element.closest('.list')) found.push(element.tagName)
        if (element.tagName === 'IFRAME' && !/^https?:/.test((element as HTMLIFrameElement).src)) found.push('IFRAME ' + (element as HTMLIFrameElement).src)
        if (element.tagName === 'IMG' && !/^(blob:|data:image\/(png|jpeg|gif|webp))/.test((element as HTMLImageElement).src)) found.push('IMG ' + (element as HTMLImageElement).src)
      }
      return found
    })
  }

  it(`never run: ${corpus.length} texts as messages, names, captions, cards and tools`, async () => {
    const visitor = await rig.visit()
    const data = Buffer.from('x').toString('base64')
    const frames = corpus.flatMap((text, i): object[] => {
      const id = 'x' + i
      return [
        { t: 'message', id, text, chunk: { index: 0, total: 1 }, final: true, seq: 0, ...(i % 5 === 0 && { source: 'cron', job: text }) },
        ...(i % 4 === 0 ? [{ t: 'media', id: 'f' + i, kind: i % 8 ? 'document' : 'image', mime: i % 8 ? 'text/html' : 'image/svg+xml', filename: text, caption: text, size: 1, part: 0, parts: 1, final: true, seq: 0, data }] : []),
        ...(i % 4 === 1 ? [{ t: 'echo', id: 'e' + i, from: { id: text.slice(0, 20), name: text }, text, seq: 0 }] : []),
        ...(i % 4 === 2 ? [{ t: 'prompt', id: 'c' + i, kind: i % 8 === 2 ? 'exec_approval' : text, text, command: text, description: text, options: [{ id: text, label: text, style: text }], timeout_seconds: 300, expires_at: text, seq: 0 }] : []),
        ...(i % 4 === 3 ? [{ t: 'tool', id: 't' + i, name: text, state: text, title: text, text, turn: 'u' + i }] : []),
      ]
    })
    const page = await hostile(visitor, frames)
    await page.locator(`[data-id=x${corpus.length - 1}]`).waitFor({ timeout: 60_000 })
    await page.locator('details.tools summary').last().click()
    // Only a part of them is in the page at a time.
    const shown = new Set<string>()
    await until(async () => {
      assert.deepEqual(await inspect(page), [])
      for (const id of await page.locator('[data-id^=x]').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-id')!))) shown.add(id)
      await page.locator('.list').evaluate((list) => list.scrollTo({ top: 0, behavior: 'instant' }))
      return shown.size === corpus.length
    }, 'all was shown', 60_000)
    // Stored texts are as harmless when they are shown again.
    await page.reload()
    await online(page)
    await page.waitForSelector('.row')
    assert.deepEqual(await inspect(page), [])
    assert.ok(corpus.length >= 200)
    assert.deepEqual(await visitor.leave(), [])
  })

  it("can't reach the DOM by mistake: the browser accepts HTML from DOMPurify only", async () => {
    for (const path of ['', 'admin']) {
      const visitor = await rig.visit()
      const page = await visitor.open(rig.server.url + path)
      const got = await page.evaluate(() => {
        const tries: (() => unknown)[] = [
          () => (document.createElement('div').innerHTML = '<b>x</b>'),
          () => document.body.insertAdjacentHTML('beforeend', '<b>x</b>'),
          () => new DOMParser().parseFromString('<b>x</b>', 'text/html'),
          () => (document.createElement('script').src = './sw.js'),
          () => new Worker('./sw.js'),
          () => (window as unknown as { trustedTypes: { createPolicy(name: string, rules: object): void } }).trustedTypes.createPolicy('another', {}),
        ]
        return tries.map((attempt) => {
          try {
            attempt()
            return 'done'
          } catch (error) {
            return (error as Error).name
          }
        })
      })
      assert.deepEqual(got, got.map(() => 'TypeError'), path)
      const trouble = await visitor.leave()
      assert.deepEqual(trouble.filter((line) => !/trusted-?types|TrustedHTML|TrustedScript/i.test(line)), [], path)
    }
  })

  it('never run as the URL of an avatar', async () => {
    for (const avatar_url of ['javascript:ran=1', 'JAVASCRIPT:top.ran=1', ' javascript:ran=1', 'data:text/html,<script>parent.ran=1</script>', 'vbscript:x', 'blob:x', '//evil.example/a', '"><script>ran=1</script>', 'file:///etc/passwd', 'https://', 'https://[']) {
      const visitor = await rig.visit()
      const page = await hostile(visitor, [], { avatar_url })
      await page.locator('.agent-avatar').waitFor()
      assert.equal(await page.locator('iframe').count(), 0, avatar_url)
      assert.deepEqual(await inspect(page), [])
      assert.deepEqual(await visitor.leave(), [])
    }
  })
})
