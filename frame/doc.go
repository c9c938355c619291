// Package frame implements version 1 of the Hermes Mobile device protocol (doc/protocol.md): the
// type of every frame, a strict codec for what devices send, a tolerant codec for what the server
// sends, the error and close codes, and the limits. [Visible] and [VisibleCommand] show a text the
// way a person must see it before deciding on it.
//
// A frame is one WebSocket text message with one JSON object whose type is in "t" (doc/protocol.md
// §1). An [Up] frame goes from a device to the server, a [Down] frame from the server to a device.
// [DecodeUp] rejects what the protocol rejects, with an [*Error] that is itself the frame to answer
// with. [DecodeDown] ignores what it does not know, as every client must.
//
// The package keeps no state, does not log and does no I/O. All of it is safe for concurrent use.
//
// # Compatibility
//
// From 1.0 on this package follows semantic versioning. Within a major version, exported names keep
// their meaning and the wire stays compatible with [Protocol]. A minor version may add frame types,
// fields, codes and constants: write struct literals with field names, and give every switch over
// frames, codes or kinds a default case. The texts of errors, and the values of limits that a
// server announces in [Capabilities], may change at any time.
package frame

// Protocol is the version of the device protocol that this package implements, as in
// Ready.Protocol.
const Protocol = 1
