import type { Code, Error as ErrorFrame } from './frames.js'

/** An error frame of the server, or what it would have said: one plain sentence, and what to do (doc/protocol.md §10). */
export class FrameError extends Error {
  override name = 'FrameError'
  constructor(
    readonly code: Code | (string & {}),
    message: string,
    /** The id of what it is about; empty where there is none. */
    readonly ref = '',
    /** Seconds; 0 where it does not apply. */
    readonly retryAfter = 0,
  ) {
    super(message)
  }
}

/** frameError turns an error frame into an error that can be thrown. */
export function frameError(frame: ErrorFrame): FrameError {
  return new FrameError(frame.code, frame.message, frame.ref, frame.retry_after)
}

/** Why the device stopped trying (doc/protocol.md §1: close code 1008, or a refused upgrade where the platform tells). */
export class NoAccessError extends Error {
  override name = 'NoAccessError'
  constructor(
    message: string,
    /** auth_failed, forbidden or bad_frame; empty where the server gave none. */
    readonly code: Code | (string & {}) = '',
    /** HTTP status of a refused upgrade, else 0. A browser does not tell it. */
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

/** close was called. */
export class ClosedError extends Error {
  override name = 'ClosedError'
  constructor() {
    super('the device was closed')
  }
}

/** The connection broke before the answer came; whether the server did it is not known. */
export class LinkLostError extends Error {
  override name = 'LinkLostError'
  constructor() {
    super('the connection broke before the answer came')
  }
}

/** The agent cannot do this now, by its capabilities. Nothing was sent. */
export class UnsupportedError extends Error {
  override name = 'UnsupportedError'
  constructor(readonly what: string) {
    super('the agent does not offer this now: ' + what)
  }
}

/** The server's reason for not doing a call. */
export class CallError extends Error {
  override name = 'CallError'
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** An answer that a new attempt does not change: a link that has expired, a file that is gone. */
export class DownloadError extends Error {
  override name = 'DownloadError'
  constructor(
    message: string,
    /** HTTP status; 0 where there was none. */
    readonly status = 0,
  ) {
    super(message)
  }
}
