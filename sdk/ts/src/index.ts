/**
 * The client of the Hermes Mobile device protocol (doc/protocol.md). Web pages, apps, scripts and bots use it to talk to an agent
 * through `hermes-mobile serve`.
 *
 * {@link open} returns a {@link Device} that connects in the background and stays connected: it backs off, reconnects, resumes, and gives
 * up only where the server says that retrying is pointless. It makes two promises:
 *
 * - Everything that {@link Device.send}, {@link Device.sendVoice}, {@link Device.sendFile} and {@link Device.answer} accept reaches the
 *   server at least once, messages in order, and the server drops duplicates by id. With a durable {@link Store}, texts, voice messages
 *   and answers survive the end of the page or process, too; files do with `@hermes-mobile/sdk/uploads`.
 * - Everything durable that the server sends (final messages, files, ends of cards, deliveries) comes out of {@link Device.events} or
 *   {@link Device.on} once and in order, across reconnects. The device acknowledges an event only after it was handled and the store
 *   holds the new cursor. A page that ends in between gets that event again, and so does one whose listener threw.
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
/** The frames as they are on the wire, for an app that needs more than the events. */
export type * as frame from './frames.js'
