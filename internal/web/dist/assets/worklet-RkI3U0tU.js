// The audio worklet of recordWav, for a page whose policy lets in no script that is made on the spot. It hands over what comes in.
registerProcessor('hermes-tap', class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice())
    return true
  }
})
