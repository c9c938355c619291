// Package media is everything about files: it puts uploads together under
// limits, keeps stored files, names and types them, and hands them out by
// signed links.
//
// An [Assembler] belongs to one device and turns the parts of a series into a
// file of the [Store]. The store keeps plain files named by the SHA-256 of
// their content; a [Signer] makes links to them, and [Handler] serves those.
//
// What a device does wrong comes back as a [*Refusal], whose Reason may be
// shown to it. Where the budget of the data folder has no room the error is a
// [*quota.Full], which may be shown, too. Every other error is ours (a full
// disk, a read-only folder): it is wrapped, so that errors.Is finds the cause,
// and is not meant for the peer.
//
// Sources: protocol §3 (audio), §5 (media), §10 (errors). The package logs
// nothing and starts no goroutine.
package media
