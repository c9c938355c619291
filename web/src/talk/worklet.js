// Runs in the audio thread, in place of the SDK's own worklet: hands over what comes in.
registerProcessor('hermes-tap', class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice())
    return true
  }
})
