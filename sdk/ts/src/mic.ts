/**
 * Records voice messages in the format that agents understand best: WAV, 16 kHz, mono, 16 bit.
 *
 * @packageDocumentation
 */
export { recordWav, type Recording, type RecordOptions } from './mic/record.js'
export { Resampler } from './mic/resample.js'
export { encodeWav, levelOf } from './mic/wav.js'
