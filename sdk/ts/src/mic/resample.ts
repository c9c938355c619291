/** Zero crossings of the filter on each side: enough to suppress aliases by about 60 dB. */
const CROSSINGS = 24
/** Values of the filter between two crossings. */
const STEPS = 256
/** The start of the cutoff, as a fraction of the band of the lower rate. */
const EDGE = 0.92

/** filter is one side of a windowed sinc. All rates use the same filter, stretched. */
const filter = Float64Array.from({ length: CROSSINGS * STEPS + 2 }, (_, i) => {
  const x = i / STEPS
  if (x >= CROSSINGS) return 0
  const window = 0.42 + 0.5 * Math.cos((Math.PI * x) / CROSSINGS) + 0.08 * Math.cos((2 * Math.PI * x) / CROSSINGS)
  return window * (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))
})

/** Resampler converts sound from one rate to another, piece by piece. It filters out what the lower rate cannot represent. */
export class Resampler {
  private readonly cutoff: number // as a fraction of the band of the input
  private readonly reach: number // input samples that an output sample uses, on each side
  private input: Float32Array
  private passed = 0 // input samples that are no longer needed
  private made = 0 // output samples

  /** Both rates are whole numbers, in samples per second. */
  constructor(
    private readonly from: number,
    private readonly to: number,
  ) {
    this.cutoff = Math.min(1, to / from) * EDGE
    this.reach = Math.ceil(CROSSINGS / this.cutoff)
    this.input = new Float32Array(this.reach) // silence before the beginning
  }

  /** push adds input and returns the output that is complete. */
  push(samples: Float32Array): Float32Array {
    const input = new Float32Array(this.input.length + samples.length)
    input.set(this.input)
    input.set(samples, this.input.length)
    const output: number[] = []
    for (;;) {
      // In whole numbers, so that a long recording is as precise as a short one.
      const place = this.made * this.from
      const beyond = place % this.to
      const first = (place - beyond) / this.to - this.passed
      if (first + 2 * this.reach >= input.length) {
        const done = Math.max(0, Math.min(first, input.length))
        this.input = input.slice(done)
        this.passed += done
        return Float32Array.from(output)
      }
      output.push(this.sample(input, first, beyond / this.to))
      this.made++
    }
  }

  /** flush returns the rest, as if silence followed. */
  flush(): Float32Array {
    return this.push(new Float32Array(this.reach))
  }

  /** sample weighs the input from first on. The center is `reach` plus a fraction further. */
  private sample(input: Float32Array, first: number, fraction: number): number {
    let sum = 0
    for (let i = 0; i <= 2 * this.reach; i++) {
      const place = Math.abs(this.reach + fraction - i) * this.cutoff * STEPS
      if (place >= CROSSINGS * STEPS) continue
      const before = Math.floor(place)
      const value = filter[before]! + (filter[before + 1]! - filter[before]!) * (place - before)
      sum += input[first + i]! * value
    }
    return sum * this.cutoff
  }
}
