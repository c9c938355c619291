import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { Hermes } from './hermes'
import { browserRig, DESKTOP, noBrowser, PHONE, reads, say, Server, until, Visitor } from './rig'
import { CAPABILITIES, scripted } from './scriptedServer'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Finding {
  id: string
  nodes: { target: string[]; failureSummary: string }[]
}

/** accessible checks a screen with axe in light and dark, and that it fits. */
async function accessible(page: Page, screen: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.evaluate(axe)
    const findings = await page.evaluate(async () => {
      const { violations } = await (window as unknown as { axe: { run(options: object): Promise<{ violations: Finding[] }> } }).axe.run({ resultTypes: ['violations'] })
      return violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.target.join(' ') + ' ' + node.failureSummary.replace(/\s+/g, ' ')).join(' | '))
    })
    assert.deepEqual(findings, [], `${screen} in ${colorScheme}`)
  }
  const over = await page.evaluate(() => [...document.querySelectorAll('dialog[open], main, .session-bar, .chat-header, aside')].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.className))
  assert.deepEqual(over, [], `${screen} is too wide`)
}

const dialog = (page: Page, name: string) => page.getByRole('dialog', { name })
const close = (page: Page, name: string) => dialog(page, name).getByRole('button', { name: 'Close' }).click()

describe("the agent's profiles, models and jobs", { skip: noBrowser, concurrency: 3 }, () => {
  const rig = browserRig()

  const visit = (name: string, options: BrowserContextOptions, run: (visitor: Visitor, hermes: Hermes) => Promise<void>) =>
    it(name, { timeout: 120_000 }, async () => {
      const hermes = await Hermes.start()
      const server = await Server.start(hermes.env)
      const visitor = await Visitor.come(rig.browser, server, options)
      try {
        await run(visitor, hermes)
        assert.deepEqual(await visitor.leave(), [])
      } finally {
        await visitor.context.close()
        await server.end()
        await hermes.end()
      }
    })

  it('switches the conversation to another profile', { timeout: 120_000 }, async () => {
    const server = await Server.start()
    try {
      const visitor = await Visitor.come(rig.browser, server, PHONE)
      const page = await visitor.pair()
      assert.equal(await page.locator('.session-bar').count(), 0)
      await say(page, '/demo profiles')
      await page.getByRole('button', { name: 'Profile: default' }).click()
      await accessible(page, 'the profiles')
      await dialog(page, 'Profiles').getByRole('button', { name: 'default', pressed: true }).waitFor()
      await dialog(page, 'Profiles').getByRole('button', { name: 'work' }).click()
      await page.getByText("You're now talking to the profile work.").waitFor()
      await page.getByRole('button', { name: 'Profile: work' }).waitFor()
      await say(page, '/demo profiles')
      await reads(page, 'you use work')
      await page.reload()
      await page.getByRole('button', { name: 'Profile: work' }).waitFor()
      assert.deepEqual(await visitor.leave(), [])
    } finally {
      await server.end()
    }
  })

  it("explains why it can't switch to a deleted profile", { timeout: 120_000 }, async () => {
    const server = await Server.start()
    try {
      const visitor = await Visitor.come(rig.browser, server)
      const page = await scripted(visitor, { ready: { capabilities: { ...CAPABILITIES, call: ['profiles.list', 'profiles.choose'] } }, answer: ({ t, id, method }) => {
        if (t !== 'call') return []
        if (method === 'profiles.list') return [{ t: 'result', id, result: { profiles: [{ name: 'default', current: true }, { name: '<b>work</b>\u202e', current: false }] } }]
        return [{ t: 'result', id, error: { code: 'not_found', message: 'there is no profile of that name: choose one of default' } }]
      } })
      await page.getByRole('button', { name: 'Profile: default' }).click()
      await dialog(page, 'Profiles').getByRole('button', { name: 'work' }).click()
      await dialog(page, 'Profiles').getByText('there is no profile of that name').waitFor()
      assert.equal(await dialog(page, 'Profiles').locator('b').count(), 0)
      assert.deepEqual(await visitor.leave(), [])
    } finally {
      await server.end()
    }
  })

  visit('switches to another model and back', DESKTOP, async (visitor, hermes) => {
    const page = await visitor.pair()
    await page.getByRole('button', { name: 'Model: small-model' }).click()
    await dialog(page, 'Models').getByRole('button', { name: 'small-model', pressed: true }).waitFor()
    await dialog(page, 'Models').getByRole('button', { name: 'acme/thinker-70b' }).click()
    await page.getByRole('button', { name: 'Model: acme/thinker-70b' }).waitFor()
    await page.getByText('acme/thinker-70b now answers.').waitFor()
    await say(page, 'who are you?')
    await reads(page, 'You said: who are you?')
    assert.equal(hermes.runs[0]!.model, 'acme/thinker-70b')
    assert.equal(hermes.runs[0]!.provider, 'open-router')
    // A typed command selects a profile too.
    await say(page, '/model large-model')
    await page.getByRole('button', { name: 'Model: large-model' }).click()
    await dialog(page, 'Models').getByRole('button', { name: 'Let the agent choose' }).click()
    await page.getByRole('button', { name: 'Model: small-model' }).waitFor()
    await say(page, 'and now?')
    await reads(page, 'You said: and now?')
    assert.equal(hermes.runs[1]!.model, undefined)
    // Selecting a deleted profile shows an error.
    const asked = () => hermes.asked.filter((what) => what === 'GET /api/model/options').length
    const before = asked()
    await page.getByRole('button', { name: 'Model: small-model' }).click()
    await until(() => asked() > before, 'the list was asked for')
    await dialog(page, 'Models').getByRole('button', { name: 'large-model', disabled: false }).waitFor() // the event has arrived
    hermes.providers = { custom: ['small-model'] }
    await dialog(page, 'Models').getByRole('button', { name: 'large-model' }).click()
    await dialog(page, 'Models').getByRole('alert').getByText('the gateway has no such model', { exact: false }).waitFor()
  })

  visit('creates, pauses, resumes, runs and deletes jobs', PHONE, async (visitor, hermes) => {
    const page = await visitor.pair()
    await page.getByRole('button', { name: 'Sessions', exact: true }).click()
    await page.getByRole('button', { name: 'Scheduled jobs' }).click()
    const jobs = dialog(page, 'Scheduled jobs')
    await jobs.getByText('No jobs yet. Create one to have the agent work on a schedule.').waitFor()
    await jobs.getByRole('button', { name: 'New job' }).click()
    await until(() => page.evaluate(() => document.activeElement?.closest('form') !== null), 'the form has the focus')
    await jobs.getByLabel('Name').fill('Morning news')
    await jobs.getByLabel('Schedule').fill('nonsense')
    await jobs.getByLabel('What should the agent do?').fill('Tell me the news')
    await accessible(page, 'a new job')
    await jobs.getByRole('button', { name: 'Create' }).click()
    await jobs.getByRole('alert').getByText("Invalid schedule 'nonsense'", { exact: false }).waitFor()
    await jobs.getByLabel('Schedule').fill('every 2h')
    await jobs.getByRole('button', { name: 'Create' }).click()
    const job = jobs.getByRole('listitem').filter({ hasText: 'Morning news' })
    await job.getByText('every 2h').waitFor()
    await job.getByRole('button', { name: 'Pause' }).click()
    await job.getByText('Paused', { exact: true }).waitFor()
    assert.equal([...hermes.jobs.values()][0]!.enabled, false)
    await job.getByRole('button', { name: 'Resume' }).click()
    await job.getByText('Paused', { exact: true }).waitFor({ state: 'detached' })
    assert.equal([...hermes.jobs.values()][0]!.enabled, true)
    await job.getByRole('button', { name: 'Run now' }).click()
    await job.getByText('(ok)').waitFor()
    await accessible(page, 'jobs')
    await job.getByRole('button', { name: 'Delete' }).click()
    await dialog(page, 'Delete job').getByRole('button', { name: 'Delete', exact: true }).click()
    await jobs.getByText('No jobs yet. Create one to have the agent work on a schedule.').waitFor()
    await until(() => page.evaluate(() => document.activeElement?.matches('.jobs-panel')), 'the focus stays in the panel')
    assert.equal(hermes.jobs.size, 0)
  })

  visit('shows the token usage of a turn', DESKTOP, async (visitor) => {
    const page = await visitor.pair()
    await say(page, 'count')
    await reads(page, 'You said: count')
    for (const side of ['.theirs', '.mine']) {
      await page.locator(side).last().hover()
      await page.locator(side).last().getByRole('button', { name: 'Actions' }).click()
      await page.locator(side).last().getByText('Tokens in this turn: 1,200 in, 34 out, 1,234 total').waitFor()
      await page.keyboard.press('Escape')
    }
  })

  visit('shows the route to the agent, its reason and the diagnostics', DESKTOP, async (visitor, hermes) => {
    await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const page = await visitor.pair()
    await page.getByRole('button', { name: 'Route to the agent: Remote' }).click()
    const route = dialog(page, 'Route to the agent')
    await route.getByText('0.22.2.post1').first().waitFor()
    assert.match((await route.locator('.reason').textContent())!, /\w+ \w+/)
    await accessible(page, 'the route')
    await route.getByRole('button', { name: 'Copy diagnostics' }).click()
    await route.getByRole('status').getByText('Copied').waitFor()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    assert.match(copied, /0\.22\.2/)
    assert.ok(!copied.includes(hermes.key))
    await close(page, 'Route to the agent')
    await page.getByRole('button', { name: 'Route to the agent: Remote' }).waitFor()
  })

  visit('shows an unreachable gateway where a call fails', DESKTOP, async (visitor, hermes) => {
    hermes.has('Somewhere', ['a', 'b'])
    const page = await visitor.pair()
    const session = page.getByRole('region', { name: 'Sessions' }).getByRole('listitem').filter({ hasText: 'Somewhere' })
    await session.waitFor()
    await hermes.end()
    await session.locator('.session-open').click()
    await page.getByRole('region', { name: 'Sessions' }).getByRole('alert').getByText('the gateway cannot be used now', { exact: false }).waitFor()
    await page.getByText('The agent is offline.', { exact: false }).waitFor()
    await page.getByRole('button', { name: 'Route to the agent: No route' }).waitFor()
  })

  for (const [size, options] of Object.entries({ phone: PHONE, wide: DESKTOP })) {
    visit(`has no axe violations: ${size}`, options, async (visitor, hermes) => {
      hermes.has('A session with a rather long title, as they happen to be given', ['What about it, and is that all there is to say about it?', 'No.'])
      for (let i = 0; i < 7; i++) hermes.has('Session ' + i, ['hello', 'hello'], { source: 'telegram', hoursAgo: 30 * i })
      hermes.providers.many = Array.from({ length: 10 }, (_, i) => 'vendor/model-' + i)
      const page = await visitor.pair()
      const opened = async () => {
        if (size === 'phone') await page.getByRole('button', { name: 'Sessions', exact: true }).click()
      }
      await opened()
      await page.getByRole('button', { name: 'Actions for Session 0' }).click()
      await accessible(page, 'sessions')
      await page.getByRole('button', { name: 'Delete', exact: true }).click()
      await accessible(page, 'the question')
      await page.keyboard.press('Escape')
      await page.locator('.session-open').filter({ hasText: 'A session with' }).click()
      await page.locator('.theirs').filter({ hasText: 'No.' }).waitFor()
      await accessible(page, 'a session')
      await page.getByRole('button', { name: 'Model: small-model' }).click()
      await dialog(page, 'Models').getByRole('searchbox').fill('model-3')
      await dialog(page, 'Models').getByRole('button', { name: 'vendor/model-3' }).waitFor()
      await accessible(page, 'models')
      await close(page, 'Models')
      // Nothing is cut off from right to left either.
      await page.evaluate(() => (document.documentElement.dir = 'rtl'))
      await accessible(page, 'a session, from right to left')
      await opened()
      await accessible(page, 'sessions, from right to left')
      if (size === 'phone') await close(page, 'Sessions')
      await page.evaluate(() => (document.documentElement.dir = 'ltr'))
      await page.getByRole('button', { name: 'Settings' }).click()
      await page.getByLabel('Language').selectOption('ru')
      await page.keyboard.press('Escape')
      if (size === 'phone') await page.getByRole('button', { name: 'Сессии', exact: true }).click()
      await page.getByRole('button', { name: 'Действия с сессией Session 0' }).click()
      await accessible(page, 'sessions in Russian')
      await page.getByRole('button', { name: 'Задания по расписанию' }).click()
      await page.getByRole('button', { name: 'Новое задание' }).click()
      await accessible(page, 'jobs in Russian')
    })
  }

  visit('works by keyboard alone', DESKTOP, async (visitor, hermes) => {
    hermes.has('Keys', ['a', 'by keys'])
    const page = await visitor.pair()
    const open = page.locator('.session-open')
    await open.waitFor()
    const to = async (what: string) => {
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press('Tab')
        if (await page.evaluate((what) => document.activeElement?.matches(what), what)) return
      }
      assert.fail('the keyboard does not come to ' + what)
    }
    await page.locator('body').click({ position: { x: 2, y: 2 } })
    await to('.session-open')
    await page.keyboard.press('Enter')
    await page.locator('.theirs').filter({ hasText: 'by keys' }).waitFor()
    await to('.model')
    await page.keyboard.press('Enter')
    await to('[aria-pressed=false]')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Model: large-model' }).waitFor()
    await until(() => page.evaluate(() => document.activeElement?.matches('.model')), 'the focus is where it was')
  })

  visit('attaches only images if the agent accepts no other files', PHONE, async (visitor) => {
    const page = await visitor.pair()
    assert.equal(await page.getByRole('button', { name: 'Record a voice message' }).count(), 0)
    await page.getByText('Write a message or attach a file.').waitFor()
    await page.getByRole('button', { name: 'Attach' }).click()
    const menu = page.getByRole('group', { name: 'Attach' })
    assert.deepEqual((await menu.getByRole('button').allTextContents()).map((text) => text.trim()), ['Photo', 'Camera'])
    assert.deepEqual(await menu.locator('input').evaluateAll((all) => all.map((input) => (input as HTMLInputElement).accept)), ['image/*', 'image/*'])
    await page.keyboard.press('Escape')
    for (const how of ['paste', 'drop']) {
      await page.evaluate((how) => {
        const data = new DataTransfer()
        data.items.add(new File(['%PDF-1.4'], how + '.pdf', { type: 'application/pdf' }))
        const event = how === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
        document.getElementById('composer')!.dispatchEvent(event)
      }, how)
      await page.getByText(`${how}.pdf wasn't attached. The agent accepts only images right now.`).waitFor()
    }
    assert.equal(await page.locator('.attached li').count(), 0)
    await page.evaluate(() => {
      const data = new DataTransfer()
      data.items.add(new File(['GIF89a'], 'dot.gif', { type: 'image/gif' }))
      document.getElementById('composer')!.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
    })
    await page.locator('.attached li').filter({ hasText: 'dot.gif' }).waitFor()
  })

  it('offers only listed methods, and keeps attachments that the agent no longer accepts', async () => {
    const server = await Server.start()
    const visitor = await Visitor.come(rig.browser, server)
    const less = {
      text: true, media: true, audio: false, media_kinds: ['image', 'audio'], call: ['sessions.list', 'jobs.list', 'models.list', 'route.show'], max_media_bytes: 1000, max_frame_bytes: 16777216, chunk_bytes: 1000,
      max_parts: 10, min_chunk_bytes: 1, max_uploads: 8,
    }
    const job = { id: '1', name: 'Watering', schedule: 'every 2h', prompt: 'Water', deliver: 'local', paused: false }
    const results: Record<string, object> = {
      'commands.list': { commands: [] }, 'models.list': { models: [{ id: 'one', name: 'one', current: true }] }, 'jobs.list': { jobs: [job] },
      'route.show': { kind: 'local', reason: 'the local address answers', diagnostics: 'all is well' },
      'sessions.list': { sessions: [{ id: '1', title: 'Only to look at', preview: '', at: '2026-01-02T15:04:05Z', messages: 1, source: 'cli', current: false }] },
    }
    const sent: unknown[] = []
    const page = await scripted(visitor, {
      ready: { capabilities: { ...CAPABILITIES, call: ['commands.list'] } },
      answer: (frame) => {
        if (frame.t !== 'call') {
          if (frame.t === 'text' || frame.t === 'media') sent.push(frame)
          return []
        }
        const result = { t: 'result', id: frame.id, result: results[frame.method as string] }
        return frame.method === 'commands.list' ? [result, { t: 'capabilities', agent: 'online', capabilities: less }] : [result]
      },
    })
    for (const name of ['New session', 'Scheduled jobs', 'Models']) assert.equal(await page.getByRole('button', { name }).count(), 0, name)
    assert.equal(await page.getByRole('region', { name: 'Sessions' }).count(), 0)
    await page.evaluate(() => {
      const data = new DataTransfer()
      data.items.add(new File(['x'], 'notes.txt', { type: 'text/plain' }))
      document.getElementById('composer')!.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
    })
    await page.locator('.attached li').filter({ hasText: 'notes.txt' }).waitFor()
    await page.locator('#composer').fill('/')
    await page.getByText('Only to look at').waitFor()
    await page.locator('#composer').fill('look at this')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText("notes.txt wasn't attached. The agent accepts only images and audio files").waitFor()
    await page.locator('.attached li').filter({ hasText: 'notes.txt' }).waitFor()
    assert.equal(await page.locator('#composer').inputValue(), 'look at this')
    assert.deepEqual(sent, [])
    await page.getByRole('button', { name: 'Attach' }).click()
    assert.deepEqual(await page.locator('#attach-menu input').evaluateAll((all) => all.map((input) => (input as HTMLInputElement).accept)), ['image/*', 'audio/*'])

    await page.getByRole('button', { name: 'Route to the agent: Local' }).waitFor()

    // The agent offers lists without the methods that change them.
    for (const name of ['New session', 'Actions for Only to look at']) assert.equal(await page.getByRole('button', { name }).count(), 0, name)
    await page.getByRole('button', { name: 'Model: one' }).click()
    assert.ok(await dialog(page, 'Models').getByRole('button', { name: 'one' }).isDisabled())
    await close(page, 'Models')
    await page.getByRole('button', { name: 'Scheduled jobs' }).click()
    await dialog(page, 'Scheduled jobs').getByText('Watering').waitFor()
    assert.deepEqual(await dialog(page, 'Scheduled jobs').getByRole('button').evaluateAll((all) => all.map((button) => button.getAttribute('aria-label') ?? button.textContent)), ['Close'])
    assert.deepEqual(await visitor.leave(), [])
    await server.end()
  })
})
