// Package frame is the device protocol of Hermes Mobile, version 1: the types of every frame, a strict codec for what
// devices send, a tolerant one for what the server sends, the error and close codes, and the limits. [Visible] and
// [VisibleCommand] show a text as a person must see it before deciding on it.
//
// A frame is one WebSocket text message holding one JSON object whose type is in "t" (doc/protocol.md §1). Up means
// device to server, down means server to device. [DecodeUp] refuses what the protocol refuses, with an [*Error] that is
// itself the frame to answer with; [DecodeDown] ignores what it does not know, as every client must.
//
// Nothing here keeps state, logs, or does I/O, and everything may be used from several goroutines at once.
package frame

// Protocol is the version of the device protocol that this package speaks, as in ready.protocol.
const Protocol = 1
