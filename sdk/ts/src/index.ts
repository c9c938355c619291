/**
 * The client of the Hermes Mobile device protocol (doc/protocol.md): what a web page, an app, a script or a bot uses to talk to an
 * agent through `hermes-mobile serve`.
 *
 * {@link open} gives a {@link Device} that connects by itself and stays connected: it backs off, reconnects, resumes where it was and
 * gives up only where the server says that trying again is pointless. Two promises matter to an app:
 *
 * - What {@link Device.send}, {@link Device.sendVoice}, {@link Device.sendFile} and {@link Device.answer} took reaches the server at least
 *   once and, for messages, in the order they were sent; the server drops the doubles by id. With a durable {@link Store} texts, voice
 *   messages and answers survive the end of the page or process too; files do with `@hermes-mobile/sdk/uploads`.
 * - What the server sends durably (final messages, files, cards' ends, deliveries) comes out of {@link Device.events} or
 *   {@link Device.on} once and in order, across reconnects. The server is told that an event arrived only after it was handled and the
 *   new cursor was stored. A page that ends in between gets that event again, and so does one whose listener threw.
 *
 * @packageDocumentation
 */
export { open, Device, type SendOptions, type Delivery, type Held, type Profile } from './device.js'
export type { Config } from './config.js'
export type { Waiting } from './call.js'
export type { State, Status } from './status.js'
export type * from './events.js'
export { MemoryStore, type Store, type Saved, type Entry } from './store.js'
export type { Outgoing, Receipt } from './outgoing.js'
export type { FileToSend, Source } from './upload.js'
export type { DownloadOptions } from './download.js'
export type { Socket, SocketConstructor } from './link.js'
export type { Surroundings } from './wake.js'
export { CallError, ClosedError, DownloadError, FrameError, LinkLostError, NoAccessError, ReplacedError, UnsupportedError } from './errors.js'
export { parsePairingLink, type PairingLink } from './pairing.js'
export { decode, encode, type UnknownFrame } from './codec.js'
/** The frames as they are on the wire, for an app that needs more than the events say. */
export type * as frame from './frames.js'
