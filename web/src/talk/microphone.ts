import { RATE, wav } from './wav'
import worklet from './worklet.js?url&no-inline'


export interface Recording {
  /** stop gives what was recorded as WAV, 16 kHz, mono, 16 bit. */
  stop(): Promise<Uint8Array>
  /** discard forgets it and lets the microphone go. */
  discard(): void
}

/** record asks for the microphone and begins. level is called some times a second with how loud it is, 0 to 1. */
export async function record(level: (loudness: number) => void): Promise<Recording> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } })
  const context = new AudioContext()
  const pieces: Float32Array<ArrayBuffer>[] = []
  const release = () => {
    stream.getTracks().forEach((track) => track.stop())
    void context.close().catch(() => {})
  }
  try {
    await context.audioWorklet.addModule(worklet)
    await context.resume()
    const tap = new AudioWorkletNode(context, 'tap', { numberOfOutputs: 0 })
    tap.port.onmessage = ({ data }: MessageEvent<Float32Array<ArrayBuffer>>) => {
      pieces.push(data)
      level(Math.min(1, 4 * Math.sqrt(data.reduce((sum, sample) => sum + sample * sample, 0) / data.length)))
    }
    context.createMediaStreamSource(stream).connect(tap)
  } catch (error) {
    release()
    throw error
  }
  return {
    async stop() {
      const { sampleRate } = context
      release()
      return wav(await resampled(pieces, sampleRate))
    },
    discard: release,
  }
}

async function resampled(pieces: Float32Array<ArrayBuffer>[], rate: number): Promise<Float32Array> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (length === 0) return new Float32Array(0)
  const offline = new OfflineAudioContext(1, Math.max(1, Math.round((length * RATE) / rate)), RATE)
  const buffer = offline.createBuffer(1, length, rate)
  let at = 0
  for (const piece of pieces) {
    buffer.copyToChannel(piece, 0, at)
    at += piece.length
  }
  const source = offline.createBufferSource()
  source.buffer = buffer
  source.connect(offline.destination)
  source.start()
  return (await offline.startRendering()).getChannelData(0)
}
