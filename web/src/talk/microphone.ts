import { recordWav, type Recording } from '@hermes-mobile/sdk/mic'
import worklet from './worklet.js?url&no-inline'

/** The page's policy lets no script in that is made on the spot, so the worklet comes from a file of the page. */
class Context extends AudioContext {
  override get audioWorklet(): AudioWorklet {
    const own = super.audioWorklet
    return { addModule: () => own.addModule(worklet) } as unknown as AudioWorklet
  }
}

/** record asks for the microphone and begins. level is told some times a second how loud it is, 0 to 1. */
export function record(level: (loudness: number) => void): Promise<Recording> {
  return recordWav({ level, audio: { AudioContext: Context, mediaDevices: navigator.mediaDevices } })
}
