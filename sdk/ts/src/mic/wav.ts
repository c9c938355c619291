/** encodeWav returns sound from -1 to 1 as a WAV file with one channel and 16 bit. */
export function encodeWav(samples: Float32Array, rate: number): Uint8Array {
  const bytes = samples.length * 2
  const view = new DataView(new ArrayBuffer(44 + bytes))
  const words = (at: number, text: string) => [...text].forEach((char, i) => view.setUint8(at + i, char.charCodeAt(0)))
  words(0, 'RIFF')
  view.setUint32(4, 36 + bytes, true)
  words(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true) // PCM
  view.setUint16(22, 1, true) // one channel
  view.setUint32(24, rate, true)
  view.setUint32(28, rate * 2, true)
  view.setUint16(32, 2, true)
  view.setUint16(34, 16, true)
  words(36, 'data')
  view.setUint32(40, bytes, true)
  samples.forEach((sample, i) => view.setInt16(44 + i * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32767), true))
  return new Uint8Array(view.buffer)
}

/** levelOf returns the level of a piece of sound, 0 to 1, on a logarithmic scale of 60 dB. */
export function levelOf(samples: Float32Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  const loudness = Math.sqrt(sum / Math.max(1, samples.length))
  return loudness > 0 ? Math.max(0, Math.min(1, 1 + Math.log10(loudness) / 3)) : 0
}
