import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { encodeWav, levelOf, recordWav, Resampler, type Recording } from '../src/mic.js'

const sine = (frequency: number, rate: number, seconds: number, loud = 0.5) =>
  Float32Array.from({ length: Math.round(rate * seconds) }, (_, i) => loud * Math.sin((2 * Math.PI * frequency * i) / rate))

/** resample pushes pieces of odd sizes. */
function resample(samples: Float32Array, from: number, to: number, piece = 997): Float32Array {
  const resampler = new Resampler(from, to)
  const out: number[] = []
  for (let at = 0; at < samples.length; at += piece) out.push(...resampler.push(samples.subarray(at, at + piece)))
  out.push(...resampler.flush())
  return Float32Array.from(out)
}

/** power is the mean square of the middle, away from the edges. */
function power(samples: Float32Array, minus?: Float32Array): number {
  const middle = samples.subarray(2000, samples.length - 2000)
  let sum = 0
  middle.forEach((s, i) => (sum += (s - (minus?.[i + 2000] ?? 0)) ** 2))
  return sum / middle.length
}

const decibel = (ratio: number) => 10 * Math.log10(ratio)

describe('the resampler', () => {
  for (const rate of [48_000, 44_100, 96_000, 22_050, 16_000, 8_000]) {
    test(`a sine of ${rate} Hz is the same sine at 16 kHz`, () => {
      for (const frequency of [200, 1_000, 3_000]) {
        const want = sine(frequency, 16_000, 1)
        const got = resample(sine(frequency, rate, 1), rate, 16_000)
        assert.ok(Math.abs(got.length - 16_000) <= 1, `${got.length} samples`)
        const error = decibel(power(got, want) / power(want))
        assert.ok(error < -45, `${frequency} Hz: the error is ${error.toFixed(1)} dB`)
      }
    })
  }

  test('frequencies above 8 kHz do not alias', () => {
    for (const frequency of [9_500, 12_000, 15_000, 20_000]) {
      const left = decibel(power(resample(sine(frequency, 48_000, 1), 48_000, 16_000)) / 0.125)
      assert.ok(left < -60, `${frequency} Hz: ${left.toFixed(1)} dB are left`)
    }
  })

  test('the size of the pieces does not matter', () => {
    const input = sine(440, 44_100, 0.5)
    const whole = resample(input, 44_100, 16_000, input.length)
    for (const piece of [1, 128, 4_096]) assert.deepEqual(resample(input, 44_100, 16_000, piece), whole, `pieces of ${piece}`)
  })
})

test('a WAV file matches its header', () => {
  const file = Buffer.from(encodeWav(Float32Array.from([0, 1, -1, 2, -2, 0.5]), 16_000))
  assert.equal(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16) + file.toString('latin1', 36, 40), 'RIFFWAVEfmt data')
  assert.deepEqual([file.readUInt32LE(4), file.readUInt16LE(20), file.readUInt16LE(22), file.readUInt32LE(24), file.readUInt32LE(28), file.readUInt16LE(34), file.readUInt32LE(40)],
    [file.length - 8, 1, 1, 16_000, 32_000, 16, 12])
  assert.deepEqual([...new Int16Array(file.buffer, file.byteOffset + 44, 6)], [0, 32767, -32767, 32767, -32767, 16384])
})

test('the level is between 0 and 1', () => {
  assert.equal(levelOf(new Float32Array(100)), 0)
  assert.equal(levelOf(new Float32Array(0)), 0)
  assert.equal(levelOf(new Float32Array(100).fill(1)), 1)
  assert.ok(Math.abs(levelOf(new Float32Array(100).fill(0.001))) < 1e-6)
  assert.ok(Math.abs(levelOf(sine(100, 16_000, 1, 0.1)) - 0.62) < 0.02)
})

/** The part of a browser's audio that a recording uses, with or without worklets. */
class FakeAudio {
  tracks = 0
  closed = 0
  processor: { onaudioprocess?: (event: unknown) => void; connect(): void; disconnect(): void } | undefined
  port: { onmessage?: (event: unknown) => void } = {}
  readonly loaded: string[] = []

  constructor(readonly rate: number, readonly worklets: boolean) {}

  get parts() {
    const fake = this
    const node = { connect() {}, disconnect() {} }
    class Context {
      sampleRate = fake.rate
      destination = {}
      audioWorklet = fake.worklets ? { addModule: (url: string) => Promise.resolve(fake.loaded.push(url)) } : undefined
      resume = () => Promise.resolve()
      close = () => Promise.resolve(fake.closed++)
      createMediaStreamSource = () => node
      createScriptProcessor = () => (fake.processor = { ...node })
    }
    const getUserMedia = () => {
      fake.tracks++
      return Promise.resolve({ getTracks: () => [{ stop: () => fake.tracks-- }] })
    }
    return { AudioContext: Context, mediaDevices: { getUserMedia } } as never
  }

  say(samples: Float32Array): void {
    for (let at = 0; at < samples.length; at += 4096) {
      const piece = samples.slice(at, at + 4096)
      if (this.worklets) this.port.onmessage?.({ data: piece })
      else this.processor!.onaudioprocess!({ inputBuffer: { getChannelData: () => piece } })
    }
  }
}

describe('a recording', () => {
  for (const worklets of [true, false]) {
    test(worklets ? 'by a worklet' : 'by a script processor', async () => {
      const audio = new FakeAudio(48_000, worklets)
      const scope = globalThis as { AudioWorkletNode?: unknown }
      scope.AudioWorkletNode = class {
        port = audio.port
        connect() {}
        disconnect() {}
      }
      const levels: number[] = []
      const recording = await recordWav({ audio: audio.parts, level: (level) => levels.push(level) })
      assert.equal(audio.tracks, 1)
      audio.say(sine(440, 48_000, 2))
      const wav = Buffer.from(await recording.stop())
      assert.equal(audio.tracks, 0) // the microphone is off
      assert.equal(audio.closed, 1)
      assert.equal(wav.readUInt32LE(24), 16_000)
      assert.ok(Math.abs(wav.length - 44 - 64_000) <= 4, `${wav.length} bytes`)
      assert.ok(levels.length >= 10 && levels.every((level) => level > 0.8), String(levels))
      const samples = Float32Array.from(new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length)), (s) => s / 32767)
      assert.ok(decibel(power(samples, sine(440, 16_000, 2)) / 0.125) < -45)
      delete scope.AudioWorkletNode
    })
  }

  test('by a worklet from an address, with the same code as the built-in one', async (t) => {
    const scope = globalThis as { AudioWorkletNode?: unknown }
    const audio = new FakeAudio(48_000, true)
    scope.AudioWorkletNode = class {
      port = audio.port
      connect() {}
      disconnect() {}
    }
    const made: Blob[] = []
    t.mock.method(URL, 'createObjectURL', (blob: Blob) => `blob:${made.push(blob)}`)
    const revoked = t.mock.method(URL, 'revokeObjectURL', () => {})
    const record = async (options = {}) => (await recordWav({ audio: audio.parts, ...options })).cancel()
    await record({ worklet: '/assets/worklet.js' })
    assert.deepEqual([audio.loaded, made.length, revoked.mock.callCount()], [['/assets/worklet.js'], 0, 0])
    await record()
    assert.deepEqual([audio.loaded[1], revoked.mock.calls[0]!.arguments], ['blob:1', ['blob:1']])
    const words = (text: string) => text.replace(/^\/\/.*/gm, '').trim()
    assert.equal(words(await made[0]!.text()), words(await readFile('worklet.js', 'utf8')))
    delete scope.AudioWorkletNode
  })

  const full = async (audio: FakeAudio, options = {}): Promise<Recording> => recordWav({ audio: audio.parts, ...options })

  test('ends when it is full', async () => {
    const audio = new FakeAudio(16_000, false)
    const recording = await full(audio, { maxBytes: 10_044 })
    audio.say(sine(440, 16_000, 1))
    const wav = await recording.wav
    assert.equal(wav.length, 10_044)
    assert.equal(audio.tracks, 0)
    audio.say(sine(440, 16_000, 1))
    assert.equal(await recording.stop(), wav)
  })

  test('is discarded by cancel', async () => {
    const audio = new FakeAudio(16_000, false)
    const recording = await full(audio)
    audio.say(sine(440, 16_000, 1))
    recording.cancel()
    assert.equal((await recording.wav).length, 0)
    assert.equal(audio.tracks, 0)
  })

  test('leaves a microphone of the app open, and reports a missing one', async () => {
    const audio = new FakeAudio(16_000, false)
    let stopped = 0
    const recording = await full(audio, { stream: { getTracks: () => [{ stop: () => stopped++ }] } })
    await recording.stop()
    assert.equal(stopped, 0)
    await assert.rejects(recordWav(), /cannot record/)
    const denied = { ...(audio.parts as object), mediaDevices: { getUserMedia: () => Promise.reject(new Error('denied')) } } as never
    const before = audio.closed
    await assert.rejects(recordWav({ audio: denied }), /denied/)
    assert.equal(audio.closed, before + 1)
  })
})
