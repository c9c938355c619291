// A minimal server for phones and a gateway with ws, written to be measured beside the real one and for nothing else. It
// keeps nothing on a disk, asks nobody for rights and sends nothing twice. Argument: host:port
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

const pingEvery = 25_000
const slots = Array.from({ length: 250 }, () => new Set()) // the devices are spread over the interval
const noMessage = '0'.repeat(18)
const devices = new Map()
let gateway
let joined = 0
let turns = 0

const ready = id => ({
  t: 'ready', session: `mobile:${id}`,
  capabilities: {
    text: true, audio: true, media: true, prompt: true, edit: true, typing: true, avatar: true, deliver: true, resume: true, accepted: true,
    stop: true, delta: true, tool: false, media_url: true, push: false, shared: false, call: ['devices.list'], max_media_bytes: 8388608,
    max_frame_bytes: 16777216, chunk_bytes: 3145728, max_parts: 2048, min_chunk_bytes: 4096, max_uploads: 8, prompt_seconds: 300
  },
  protocol: 1, server: 'yardstick/0.00000', approved: true, agent: 'online', resume: { epoch: '000000000000', from: 1, to: 0, lost: false }
})

const send = (socket, frame) => socket.send(JSON.stringify(frame))
const sendLine = (socket, frame) => socket.send(JSON.stringify(frame) + '\n')

// A device is its socket and the turn that runs.
class Device {
  constructor(socket) {
    this.socket = socket
    this.message = noMessage
    this.seq = 0
    this.alive = true
    socket.on('message', raw => this.text(JSON.parse(raw)))
    socket.on('pong', () => { this.alive = true })
    socket.on('error', () => {})
    socket.on('close', () => this.end())
  }

  text(f) {
    switch (f.t) {
      case 'hello':
        this.id = f.device.id
        this.slot = slots[joined++ % slots.length]
        this.slot.add(this)
        devices.set(this.id, this)
        return send(this.socket, ready(this.id))
      case 'ping':
        return send(this.socket, { t: 'pong', id: f.id, time: new Date().toISOString() })
      case 'text':
        return this.ask(f)
      case 'deliver':
        deliver(f)
        return send(this.socket, { t: 'delivered', id: f.id, queued: false })
    }
    this.socket.close(1008)
  }

  ask(f) {
    const mid = `m${++turns}-00000000`
    this.asked = f.id
    this.message = turns.toString(16).padStart(18, '0')
    this.begun = false
    send(this.socket, { t: 'accepted', id: f.id, duplicate: false, queued: false })
    send(this.socket, { t: 'avatar', state: 'thinking' })
    send(this.socket, { t: 'typing' })
    sendLine(gateway, {
      type: 'inbound', bufferId: mid,
      event: {
        text: f.text, message_type: 'text', message_id: mid,
        source: {
          platform: 'relay', chat_id: this.id, chat_type: 'dm', chat_name: 'Bench', user_id: this.id, user_name: 'Bench',
          thread_id: null, chat_topic: null
        }
      }
    })
  }

  // act shows what the gateway did. Marks and repeated typing are not shown.
  act(a) {
    if (a.op === 'draft') {
      if (!this.begun) {
        this.begun = true
        send(this.socket, { t: 'avatar', state: 'speaking' })
      }
      send(this.socket, { t: 'message', id: this.message, text: a.content, edit: true, chunk: { index: 0, total: 1 }, final: false })
    } else if (a.op === 'send') {
      send(this.socket, {
        t: 'message', id: this.message, text: a.content, edit: true, chunk: { index: 0, total: 1 }, final: true, reply_to: this.asked, seq: ++this.seq
      })
      send(this.socket, { t: 'typing', stop: true })
    }
  }

  ping() {
    if (!this.alive) return this.socket.terminate()
    this.alive = false
    this.socket.ping()
  }

  end() {
    this.slot?.delete(this)
    if (devices.get(this.id) === this) devices.delete(this.id)
  }
}

function deliver(f) {
  if (f.to !== 'all') {
    const d = devices.get(f.to)
    if (d) send(d.socket, { t: 'message', id: d.message, text: f.text, chunk: { index: 0, total: 1 }, final: true, seq: ++d.seq })
    return
  }
  const frame = JSON.stringify({ t: 'message', id: noMessage, text: f.text, chunk: { index: 0, total: 1 }, final: true, seq: 1 })
  for (const d of devices.values()) if (d.id !== 'sender') d.socket.send(frame)
}

function relay(socket) {
  socket.on('error', () => {})
  socket.on('message', raw => {
    for (const line of raw.toString().split('\n')) {
      if (line === '') continue
      const f = JSON.parse(line)
      if (f.type === 'hello') {
        gateway = socket
        sendLine(socket, { type: 'descriptor', descriptor: { platform: 'relay' } })
      } else if (f.type === 'outbound') {
        const d = devices.get(f.action.chat_id)
        d?.act(f.action)
        sendLine(socket, { type: 'outbound_result', requestId: f.requestId, result: { success: d !== undefined } })
      }
    }
  })
}

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 16 << 20, clientTracking: false })
const server = createServer()
server.on('upgrade', (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, s => request.url === '/relay' ? relay(s) : new Device(s))
})
const [host, port] = process.argv[2].split(':')
server.listen({ host, port: Number(port), backlog: 4096 })

// It makes up for what it was late.
const begin = Date.now()
let done = 0
setInterval(() => {
  for (const due = Math.floor((Date.now() - begin) / (pingEvery / slots.length)); done < due; done++) {
    for (const d of slots[done % slots.length]) d.ping()
  }
}, pingEvery / slots.length)
