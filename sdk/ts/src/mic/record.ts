import { MAX_AUDIO } from '../frames.js'
import { Resampler } from './resample.js'
import { encodeWav, levelOf } from './wav.js'

/** The sample rate that agents understand best. */
const RATE = 16_000

/** Options of a recording. */
export interface RecordOptions {
  /** Called about ten times a second with the level, 0 to 1, for a meter or the avatar. */
  level?: (level: number) => void
  /** The largest file, in bytes. A recording that reaches it ends. Default: the limit of a voice message, about four minutes. */
  maxBytes?: number
  /** An open microphone to use; it stays open. */
  stream?: MediaStream
  /**
   * The address of the audio worklet, the file `@hermes-mobile/sdk/worklet.js`, for a page whose policy forbids scripts from `blob:`. Without
   * it, the worklet is created on the spot. Where neither is allowed, the browser's older script processor records.
   */
  worklet?: string | URL
  /** The platform's parts, for tests. */
  audio?: { AudioContext: typeof AudioContext; mediaDevices?: Pick<MediaDevices, 'getUserMedia'> }
}

/** A running recording. */
export interface Recording {
  /** Resolves to the WAV file, for Device.sendVoice, when the recording ends: by stop, or because it is full. After cancel the file is empty. */
  readonly wav: Promise<Uint8Array>
  /** Ends the recording and returns the file. */
  stop(): Promise<Uint8Array>
  /** Ends the recording and discards it. */
  cancel(): void
}

/** recordWav opens the microphone and records 16 kHz, mono, 16 bit. Call it in the handler of a tap, because some browsers allow sound only there. */
export async function recordWav(options: RecordOptions = {}): Promise<Recording> {
  const audio = options.audio ?? {
    AudioContext: globalThis.AudioContext ?? (globalThis as { webkitAudioContext?: typeof AudioContext }).webkitAudioContext,
    mediaDevices: globalThis.navigator?.mediaDevices,
  }
  if (!audio.AudioContext || (!options.stream && !audio.mediaDevices)) {
    throw new Error('this page cannot record: open it over https, in a browser with a microphone')
  }
  const context = new audio.AudioContext()
  let stream: MediaStream | undefined
  const release = () => {
    if (!options.stream) stream?.getTracks().forEach((track) => track.stop())
    void context.close()
  }
  try {
    stream = options.stream ?? (await audio.mediaDevices!.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } }))
    await context.resume()
    return await record(context, stream, release, options)
  } catch (error) {
    release()
    throw error
  }
}

async function record(context: AudioContext, stream: MediaStream, release: () => void, options: RecordOptions): Promise<Recording> {
  const resampler = new Resampler(context.sampleRate, RATE)
  const most = Math.floor(((options.maxBytes ?? MAX_AUDIO) - 44) / 2)
  let pieces: Float32Array[] = []
  let count = 0
  let over = false
  let finish!: (wav: Uint8Array) => void
  const wav = new Promise<Uint8Array>((resolve) => (finish = resolve))
  const keep = (piece: Float32Array) => {
    pieces.push(piece)
    count += piece.length
  }
  const end = (kept: boolean) => {
    if (over) return
    over = true
    source.disconnect()
    tap.disconnect()
    release()
    if (kept) keep(resampler.flush())
    const samples = new Float32Array(Math.min(count, most))
    let at = 0
    for (const piece of pieces) {
      samples.set(piece.subarray(0, samples.length - at), at)
      at = Math.min(at + piece.length, samples.length)
    }
    pieces = []
    finish(kept ? encodeWav(samples, RATE) : new Uint8Array(0))
  }
  const meter = new Meter(context.sampleRate / 10, options.level)
  const take = (samples: Float32Array) => {
    if (over) return
    keep(resampler.push(samples))
    meter.take(samples)
    if (count >= most) end(true)
  }
  const source = context.createMediaStreamSource(stream)
  const tap = await tapOn(context, take, options.worklet)
  source.connect(tap)
  tap.connect(context.destination) // an unconnected node does not run; this one is silent
  return {
    wav,
    stop: () => {
      end(true)
      return wav
    },
    cancel: () => end(false),
  }
}

/** Meter reports the level after a number of samples. */
class Meter {
  private loudest = 0
  private count = 0

  constructor(
    private readonly every: number,
    private readonly tell: ((level: number) => void) | undefined,
  ) {}

  take(samples: Float32Array): void {
    this.loudest = Math.max(this.loudest, levelOf(samples))
    this.count += samples.length
    if (this.count < this.every) return
    this.tell?.(this.loudest)
    this.count = this.loudest = 0
  }
}

/** The same code as worklet.js of the package: it passes on its input. */
const program = `registerProcessor('hermes-tap', class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice())
    return true
  }
})`

/** tapOn returns a node that passes on its input: a worklet or, where none is available, the older script processor. */
async function tapOn(context: AudioContext, take: (samples: Float32Array) => void, worklet?: string | URL): Promise<AudioNode> {
  const made = worklet ? '' : URL.createObjectURL(new Blob([program], { type: 'text/javascript' }))
  try {
    await context.audioWorklet.addModule(worklet ?? made)
    const node = new AudioWorkletNode(context, 'hermes-tap', { numberOfInputs: 1, numberOfOutputs: 1, channelCount: 1, channelCountMode: 'explicit' })
    node.port.onmessage = (event: MessageEvent<Float32Array>) => take(event.data)
    return node
  } catch {
    // The browser has no worklets, or the policy of the page forbids them.
    const node = context.createScriptProcessor(4096, 1, 1)
    node.onaudioprocess = (event) => take(event.inputBuffer.getChannelData(0).slice())
    return node
  } finally {
    if (made) URL.revokeObjectURL(made)
  }
}
