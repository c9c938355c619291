// Package media handles files: it assembles uploads under limits, stores files, names and types
// them, and serves them by signed links.
//
// An [Assembler] belongs to one device and turns the parts of a series into a file of the [Store].
// The store has plain files named by the SHA-256 of their content. A [Signer] makes links to them,
// and [Handler] serves those.
//
// A fault of the device is a [*Refusal], whose Reason may be shown to it. If the data folder is
// full, the error is a [*quota.Full], which may be shown too. Every other error is the server's (a
// full disk, a read-only folder). It is wrapped, so errors.Is finds the cause, and is not meant for
// the peer.
//
// Sources: doc/protocol.md §3 (audio), §5 (media), §10 (errors). The package logs nothing and
// starts no goroutine.
package media
