import type { Code, Error as ErrorFrame } from './frames.js'

/** An error frame of the server, or the one it would send: one plain sentence that says what to do (doc/protocol.md §10). */
export class FrameError extends Error {
  override name = 'FrameError'
  constructor(
    readonly code: Code | (string & {}),
    message: string,
    /** The id of the frame it is about; empty where there is none. */
    readonly ref = '',
    /** In seconds; 0 where it does not apply. */
    readonly retryAfter = 0,
  ) {
    super(message)
  }
}

/** frameError turns an error frame into an error that can be thrown. */
export function frameError(frame: ErrorFrame): FrameError {
  return new FrameError(frame.code, frame.message, frame.ref, frame.retry_after)
}

/** Says why the device stopped trying (doc/protocol.md §1): close code 1008, or a rejected upgrade where the platform tells. */
export class NoAccessError extends Error {
  override name = 'NoAccessError'
  constructor(
    message: string,
    /** auth_failed, forbidden or bad_frame; empty where the server gave none. */
    readonly code: Code | (string & {}) = '',
    /** HTTP status of a rejected upgrade, otherwise 0. A browser does not tell it. */
    readonly status = 0,
  ) {
    super(message)
  }
}

/** A newer connection of the same device took over (4409). */
export class ReplacedError extends Error {
  override name = 'ReplacedError'
  constructor() {
    super('a newer connection of this device took over')
  }
}

/** Device.close was called. */
export class ClosedError extends Error {
  override name = 'ClosedError'
  constructor() {
    super('the device was closed')
  }
}

/** The connection broke before the answer came. The server may or may not have acted. */
export class LinkLostError extends Error {
  override name = 'LinkLostError'
  constructor() {
    super('the connection broke before the answer came')
  }
}

/** The agent does not support this now, according to its capabilities. Nothing was sent. */
export class UnsupportedError extends Error {
  override name = 'UnsupportedError'
  constructor(readonly what: string) {
    super('the agent does not offer this now: ' + what)
  }
}

/** Says why a call failed. */
export class CallError extends Error {
  override name = 'CallError'
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** A download that a retry cannot fix: an expired link, or a missing file. */
export class DownloadError extends Error {
  override name = 'DownloadError'
  constructor(
    message: string,
    /** HTTP status; 0 where there was no response. */
    readonly status = 0,
  ) {
    super(message)
  }
}
