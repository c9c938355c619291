import { recordWav, type Recording } from '@hermes-mobile/sdk/mic'
// From a file of the page, for its policy lets no script in that is made on the spot.
import worklet from '../../../sdk/ts/worklet.js?url&no-inline'

/** record asks for the microphone and begins. level is told some times a second how loud it is, 0 to 1. */
export function record(level: (loudness: number) => void): Promise<Recording> {
  return recordWav({ level, worklet })
}
