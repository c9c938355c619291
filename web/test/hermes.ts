import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server as Listener, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'

/** The real gateway of this version answered this, see gateway/testdata. */
const ANSWERS = JSON.parse(readFileSync(join(process.cwd(), '../gateway/testdata/answers/0.22.2.json'), 'utf8')) as Record<string, { body: Record<string, unknown> }>

interface Row {
  id: number
  role: 'user' | 'assistant' | 'tool'
  content: string
  tool_name: string | null
  timestamp: number
}

interface Session {
  id: string
  title: string | null
  source: string
  active: number
  rows: Row[]
}

interface Job {
  id: string
  name: string
  prompt: string
  schedule_display: string
  enabled: boolean
  state: string
  paused_at: string | null
  next_run_at: string
  last_run_at: string | null
  last_status: string | null
  deliver: string
}

interface Run {
  session: string
  events: object[]
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** Hermes answers like the API server of Hermes 0.22.2, with a model that repeats each message. */
export class Hermes {
  readonly key = 'k'.repeat(32)
  readonly sessions = new Map<string, Session>()
  readonly jobs = new Map<string, Job>()
  /** The received requests, as method and path. */
  readonly asked: string[] = []
  /** The parameters of started runs. */
  readonly runs: Record<string, unknown>[] = []
  /** Providers and their models. */
  providers: Record<string, string[]> = { custom: ['small-model', 'large-model'], 'open-router': ['acme/thinker-70b'] }
  /** Answers a request instead of the usual answer. */
  instead: (request: string) => { status: number; message: string } | undefined = () => undefined
  private readonly running = new Map<string, Run>()
  private readonly sockets = new Set<Socket>()
  private next = 1

  private constructor(private readonly listener: Listener) {
    listener.on('connection', (socket) => {
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
    })
    listener.on('request', (request, response) => void this.answer(request, response))
  }

  static async start(): Promise<Hermes> {
    const hermes = new Hermes(createServer())
    await new Promise<void>((resolve) => hermes.listener.listen(0, '127.0.0.1', resolve))
    return hermes
  }

  get env(): Record<string, string> {
    const { port } = this.listener.address() as AddressInfo
    return { MOBILE_AGENT: 'direct', MOBILE_API_URL: `http://127.0.0.1:${port}`, MOBILE_API_KEY: this.key, MOBILE_API_SESSIONS: 'all', MOBILE_API_JOBS: 'on' }
  }

  async end(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.listener.close(resolve))
  }

  /** has adds a session that another client held. Its messages alternate between user and agent. */
  has(title: string, said: string[], { source = 'cli', hoursAgo = 1 } = {}): Session {
    const session = this.create(title, source)
    const at = Date.now() / 1000 - hoursAgo * 3600
    said.forEach((content, i) => this.say(session, i % 2 === 0 ? 'user' : 'assistant', content, at + i))
    return session
  }

  /** used adds the output of a tool. */
  used(session: Session, tool: string, output: string): void {
    this.say(session, 'tool', JSON.stringify({ output, exit_code: 0, error: null }), session.active + 1, tool)
  }

  say(session: Session, role: Row['role'], content: string, at = Date.now() / 1000, tool: string | null = null): void {
    session.rows.push({ id: this.next++, role, content, tool_name: tool, timestamp: at })
    session.active = at
  }

  private create(title: string | null, source = 'api_server'): Session {
    if (title && [...this.sessions.values()].some((other) => other.title === title)) throw new Refusal(400, 'invalid_title', `Title '${title}' is already in use`)
    const session: Session = { id: `api_${Date.now()}_${this.next++}`, title, source, active: Date.now() / 1000, rows: [] }
    this.sessions.set(session.id, session)
    return session
  }

  private session(id: string): Session {
    const found = this.sessions.get(id)
    if (!found) throw new Refusal(404, 'session_not_found', 'Session not found: ' + id)
    return found
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://hermes')
    const what = `${request.method} ${url.pathname}`
    this.asked.push(what)
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const text = Buffer.concat(parts).toString()
    const give = (status: number, body: object) => response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
    try {
      if (url.pathname === '/health') return void give(200, ANSWERS.health!.body)
      if (request.headers.authorization !== 'Bearer ' + this.key) throw new Refusal(401, 'invalid_api_key', 'Invalid API key')
      const instead = this.instead(what)
      if (instead) throw new Refusal(instead.status, 'refused', instead.message)
      const events = /^\/v1\/runs\/([^/]+)\/events$/.exec(url.pathname)
      if (events) return this.stream(events[1]!, response)
      const [status, body] = this.respond(request.method!, url, text ? (JSON.parse(text) as Record<string, unknown>) : {})
      give(status, body)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // Jobs have a format of their own.
      give(error.status, url.pathname.startsWith('/api/jobs') ? { error: error.message } : { error: { message: error.message, type: 'invalid_request_error', param: null, code: error.code } })
    }
  }

  private respond(method: string, url: URL, body: Record<string, unknown>): [number, object] {
    const [, root, kind, id = '', act = ''] = url.pathname.split('/').map(decodeURIComponent)
    switch (`${method} /${root}/${kind}`) {
      case 'GET /v1/capabilities':
      case 'GET /v1/models':
        return [200, ANSWERS[kind!]!.body]
      case 'GET /api/model':
        return [200, {
          providers: Object.entries(this.providers).map(([slug, models]) => ({ slug, name: slug, is_current: slug === 'custom', models, total_models: models.length, authenticated: true })),
          model: 'small-model', provider: 'custom',
        }]
      case 'POST /v1/runs':
        return act === 'stop' ? [200, { status: 'stopping' }] : [202, { run_id: this.run(body), status: 'started' }]
      case 'GET /v1/runs':
        return [200, { run_id: id, status: this.running.has(id) ? 'completed' : 'unknown', session_id: this.running.get(id)?.session }]
      case 'GET /api/jobs':
        return [200, { jobs: [...this.jobs.values()] }]
      case 'POST /api/jobs':
        return [200, { job: act ? this.change(id, act) : this.plan(body) }]
      case 'DELETE /api/jobs':
        if (!this.jobs.delete(id)) throw new Refusal(404, '', 'Job not found')
        return [200, { ok: true }]
      case 'GET /api/sessions':
        if (act === 'messages') return this.page(this.session(id), url.searchParams)
        return id ? [200, { object: 'hermes.session', session: shown(this.session(id)) }] : this.list(url.searchParams)
      case 'POST /api/sessions': {
        const session = this.create((body.title as string) || null)
        if (act === 'fork') {
          session.rows = this.session(id).rows.map((row) => ({ ...row, id: this.next++ }))
          session.title ??= (this.session(id).title ?? '') + ' #2'
        }
        return [201, { object: 'hermes.session', session: shown(session) }]
      }
      case 'PATCH /api/sessions': {
        const session = this.session(id)
        if ([...this.sessions.values()].some((other) => other !== session && other.title === body.title)) throw new Refusal(400, 'invalid_title', `Title '${String(body.title)}' is already in use by session ${id}`)
        session.title = body.title as string
        return [200, { object: 'hermes.session', session: shown(session) }]
      }
      case 'DELETE /api/sessions':
        this.session(id)
        this.sessions.delete(id)
        return [200, { object: 'hermes.session.deleted', id, deleted: true }]
    }
    throw new Refusal(404, 'not_found', 'there is no ' + url.pathname)
  }

  private list(query: URLSearchParams): [number, object] {
    const limit = Number(query.get('limit') ?? 50)
    const offset = Number(query.get('offset') ?? 0)
    const all = [...this.sessions.values()].sort((a, b) => b.active - a.active)
    const data = all.slice(offset, offset + limit).map((session) => ({ ...shown(session), last_active: session.active, preview: session.rows.find((row) => row.role === 'user')?.content.slice(0, 60) ?? '' }))
    return [200, { object: 'list', data, limit, offset, has_more: data.length === limit }]
  }

  private page(session: Session, query: URLSearchParams): [number, object] {
    const limit = Number(query.get('limit') ?? 500)
    const offset = Number(query.get('offset') ?? 0)
    const end = session.rows.length - offset
    const rows = query.get('order') === 'latest' ? session.rows.slice(Math.max(0, end - limit), Math.max(0, end)) : session.rows.slice(offset, offset + limit)
    return [200, {
      object: 'list', session_id: session.id, data: rows.map((row) => ({ ...row, session_id: session.id, tool_call_id: null, tool_calls: null, finish_reason: row.role === 'assistant' ? 'stop' : null, display_kind: null })),
      pagination: { limit, offset, order: query.get('order'), returned: rows.length },
    }]
  }

  private run(body: Record<string, unknown>): string {
    this.runs.push(body)
    const session = this.session(body.session_id as string)
    const output = 'You said: ' + String(body.input)
    this.say(session, 'user', String(body.input))
    this.say(session, 'assistant', output)
    const run_id = 'run_' + this.next++
    const model = (body.model as string | undefined) ?? 'small-model'
    this.running.set(run_id, {
      session: session.id,
      events: [
        { event: 'message.delta', run_id, delta: output, seq: 0 },
        { event: 'run.completed', run_id, output, usage: { input_tokens: 1200, output_tokens: 34, total_tokens: 1234 }, runtime: { provider: 'custom', model }, completed: true, partial: false, interrupted: false, seq: 1 },
      ],
    })
    return run_id
  }

  private stream(id: string, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': open\n\n')
    this.running.get(id)?.events.forEach((event, i) => response.write(`id: ${i}\ndata: ${JSON.stringify({ timestamp: Date.now() / 1000, ...event })}\n\n`))
    response.end(': stream closed\n\n')
  }

  private plan({ name, prompt, schedule }: Record<string, unknown>): Job {
    if (!/^(every|in|\d)/.test(String(schedule))) throw new Refusal(400, '', `Invalid schedule '${String(schedule)}'. Use: 'every 2h' or cron`)
    const job: Job = {
      id: (this.next++).toString(16).padStart(12, '0'), name: String(name), prompt: String(prompt), schedule_display: String(schedule), enabled: true, state: 'scheduled',
      paused_at: null, next_run_at: new Date(Date.now() + 7_200_000).toISOString(), last_run_at: null, last_status: null, deliver: 'local',
    }
    this.jobs.set(job.id, job)
    return job
  }

  private change(id: string, act: string): Job {
    const job = this.jobs.get(id)
    if (!job) throw new Refusal(404, '', 'Job not found')
    if (act === 'run') Object.assign(job, { last_run_at: new Date().toISOString(), last_status: 'ok' })
    else Object.assign(job, act === 'pause' ? { enabled: false, state: 'paused', paused_at: new Date().toISOString() } : { enabled: true, state: 'scheduled', paused_at: null })
    return job
  }
}

function shown({ id, title, source, active, rows }: Session): object {
  return { ...(ANSWERS.session_create_default!.body.session as object), id, title, source, started_at: active, message_count: rows.length }
}
