import type { Page, WebSocketRoute } from 'playwright-core'
import { online, type Visitor } from './rig'

export const CAPABILITIES = {
  text: true, audio: true, media: true, prompt: true, edit: true, typing: true, avatar: true, deliver: true, resume: true, accepted: true, stop: true, delta: true, tool: true,
  media_url: true, push: false, shared: true, call: ['devices.list'], max_media_bytes: 8388608, max_frame_bytes: 16777216, chunk_bytes: 3145728, max_parts: 2048, min_chunk_bytes: 4096, max_uploads: 8, prompt_seconds: 300,
}

/** The default greeting of the server. */
export const READY = { t: 'ready', session: 'mobile:x', capabilities: CAPABILITIES, protocol: 1, server: 'scripted/1', approved: true, agent: 'online', resume: { epoch: 'e', from: 1, to: 0, lost: false }, token: '5'.repeat(64) }

interface Up {
  t: string
  id: string
}

export interface Script {
  /** Changes of ready. */
  ready?: object
  /** Frames that follow each ready. */
  frames?: object[]
  /** Returns the answers to a frame of the page. */
  answer?: (frame: Up & Record<string, unknown>) => object[]
}

/**
 * scripted opens the page with the test's own server behind its WebSocket, for frames that the real
 * server sends rarely or never.
 */
export async function scripted(visitor: Visitor, { ready = {}, frames = [], answer = () => [] }: Script): Promise<Page> {
  const page = await visitor.context.newPage()
  page.on('dialog', (dialog) => {
    visitor.trouble.push('a dialog: ' + dialog.message())
    void dialog.dismiss()
  })
  page.on('pageerror', (error) => visitor.trouble.push(String(error.stack)))
  page.on('console', (message) => message.type() === 'error' && visitor.trouble.push(message.text()))
  await page.routeWebSocket(/\/ws$/, (socket: WebSocketRoute) => {
    socket.onMessage((data) => {
      const frame = JSON.parse(String(data)) as Up & Record<string, unknown>
      if (frame.t === 'hello') {
        socket.send(JSON.stringify({ ...READY, ...ready }))
        for (const said of frames) socket.send(JSON.stringify(said))
      }
      for (const said of answer(frame)) socket.send(JSON.stringify(said))
    })
  })
  await page.goto(visitor.server.url + '#pair=AAAA-BBBB')
  await page.getByRole('button', { name: 'Connect' }).click()
  await online(page)
  return page
}
