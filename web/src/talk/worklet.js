// Runs beside the page in the audio thread: hands over what the microphone hears, in pieces of 1,024 samples.
class Tap extends AudioWorkletProcessor {
  constructor() {
    super()
    this.piece = new Float32Array(1024)
    this.length = 0
  }

  process([input]) {
    const samples = input?.[0]
    if (samples) {
      for (const sample of samples) {
        this.piece[this.length++] = sample
        if (this.length === this.piece.length) {
          this.port.postMessage(this.piece.slice())
          this.length = 0
        }
      }
    }
    return true
  }
}

registerProcessor('tap', Tap)
