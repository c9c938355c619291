import { recordWav, type Recording } from '@hermes-mobile/sdk/mic'
// A file of the page, because its policy forbids scripts that are created at run time.
import worklet from '../../../sdk/ts/worklet.js?url&no-inline'

/**
 * record asks for the microphone and starts. `level` receives the loudness, 0 to 1, several times a
 * second.
 */
export function record(level: (loudness: number) => void): Promise<Recording> {
  return recordWav({ level, worklet })
}
