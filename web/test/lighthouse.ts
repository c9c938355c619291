import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import lighthouse, { type Result } from 'lighthouse'
import { freePort, launchOpen, reads, say, Server, Visitor } from './rig'

export type Form = 'mobile' | 'desktop'
export type Category = 'performance' | 'accessibility' | 'best-practices'

/** The minimum score of a category, of 100. */
export const GOAL = 95

const SCREENS = {
  mobile: { mobile: true, width: 390, height: 844, deviceScaleFactor: 2, disabled: false },
  desktop: { mobile: false, width: 1280, height: 800, deviceScaleFactor: 1, disabled: false },
}
/** A desktop has its own processor and a cable. */
const CABLE = { rttMs: 40, throughputKbps: 10 * 1024, cpuSlowdownMultiplier: 1, requestLatencyMs: 0, downloadThroughputKbps: 0, uploadThroughputKbps: 0 }

export function score(result: Result, category: Category): number {
  return Math.round((result.categories[category]?.score ?? 0) * 100)
}

/**
 * judge runs Lighthouse on the chat of a paired browser, once for each form factor. `trouble` lists
 * unexpected events.
 */
export async function judge(forms: readonly Form[], categories: readonly Category[]): Promise<{ results: Result[]; trouble: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-lighthouse-'))
  const strangers: string[] = []
  const note = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    socket.on('lookup', (_error, address: string, _family, host: string) => address !== '127.0.0.1' && address !== '::1' && strangers.push(`Lighthouse asked for ${host}`))
    socket.on('connect', () => !/^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '127.') && strangers.push(`Lighthouse connected to ${socket.remoteAddress}`))
  }
  subscribe('net.client.socket', note)
  const server = await Server.start()
  const port = await freePort()
  const context = await launchOpen(folder, port)
  try {
    const visitor = await Visitor.of(context, server)
    const page = await visitor.pair('Lighthouse')
    for (const text of ['Hello there', '**Bold** and `code`:\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |', '- one\n- two']) {
      await say(page, text)
      await reads(page, /You said: (Hello|Bold|- one)/)
    }
    await say(page, '/demo image')
    await page.locator('.theirs .picture img').waitFor()
    await page.goto('about:blank') // one page at a time is connected
    const results: Result[] = []
    for (const formFactor of forms) {
      const devtools = await context.newCDPSession(page)
      // As on the first visit, everything comes from the server, and only the conversation is
      // stored.
      await devtools.send('Storage.clearDataForOrigin', { origin: server.url, storageTypes: 'service_workers,cache_storage' })
      await devtools.send('Network.clearBrowserCache')
      await devtools.detach()
      const run = await lighthouse(server.url, {
        port, formFactor, logLevel: 'error', output: 'json', disableStorageReset: true, throttlingMethod: 'simulate', onlyCategories: [...categories],
        screenEmulation: SCREENS[formFactor], ...(formFactor === 'desktop' && { throttling: CABLE }),
      })
      if (!run || run.lhr.runtimeError) throw new Error(run?.lhr.runtimeError?.message ?? 'Lighthouse gave no result')
      if (run.lhr.finalDisplayedUrl !== server.url) throw new Error('Lighthouse saw ' + run.lhr.finalDisplayedUrl)
      results.push(run.lhr)
    }
    return { results, trouble: [...(await visitor.leave()), ...strangers] }
  } finally {
    unsubscribe('net.client.socket', note)
    await context.close()
    await server.end()
    rmSync(folder, { recursive: true, force: true })
  }
}
