// The audio worklet of recordWav, for a page whose policy forbids scripts created on the spot. It passes on its input.
registerProcessor('hermes-tap', class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice())
    return true
  }
})
