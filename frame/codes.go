package frame

// Code is the reason in an error frame (doc/protocol.md §10). These are all there are.
type Code string

// The error codes. Each says when it is sent and whether sending the same thing again can help.
const (
	// AuthFailed: the token or pairing code is wrong, or the device or user is not allowed. Closed with 1008; do not retry.
	AuthFailed Code = "auth_failed"
	// Unsupported: the server does not know this frame type. The connection goes on; do not retry.
	Unsupported Code = "unsupported_frame"
	// Forbidden: this connection may not do that: a device bound to another token, a card of another device, a delivery
	// from outside. Do not retry.
	Forbidden Code = "forbidden"
	// TooBig: a frame, text, file or upload is over its limit. Do not retry the same content.
	TooBig Code = "too_big"
	// BadFrame: the frame is malformed or contradicts an earlier one. Do not retry the same content.
	BadFrame Code = "bad_frame"
	// DeviceOffline: a delivery's addressee is unknown, not approved, away where it must be live, or its outbox is full.
	// Retry later if the device may come back.
	DeviceOffline Code = "device_offline"
	// RateLimited: too often; retry after Error.RetryAfter seconds.
	RateLimited Code = "rate_limited"
	// NoSpace: the server has no room for this file: its storage limit is reached, its disk is nearly full, or the device has
	// used up its share of the day. Messages without files still go. The same file may fit later, Error.RetryAfter seconds
	// from now where that is known.
	NoSpace Code = "no_space"
	// Internal: the server could not do it, for example because its disk is full. Nothing was taken; retry later with the same id.
	Internal Code = "internal"
)

// Retry reports whether sending the same frame again, later, can succeed.
func (c Code) Retry() bool {
	return c == DeviceOffline || c == RateLimited || c == NoSpace || c == Internal
}

// CloseCode is the status of a WebSocket close frame (RFC 6455 §7.4; doc/protocol.md §1).
type CloseCode int

// The close codes the server uses, and what each asks of the client.
const (
	// CloseGoingAway: the server stops or restarts. Reconnect.
	CloseGoingAway CloseCode = 1001
	// CloseNoAccess: no access. Do not reconnect; tell the person.
	CloseNoAccess CloseCode = 1008
	// CloseTooBig: a frame was larger than MaxFrame. Reconnect, and do not send it again.
	CloseTooBig CloseCode = 1009
	// CloseTryLater: overloaded, too slow a reader, or no hello in time. Reconnect with back-off; nothing durable is lost.
	CloseTryLater CloseCode = 1013
	// CloseReplaced: a newer connection of the same device took over. Do not reconnect by itself.
	CloseReplaced CloseCode = 4409
)

// Reconnect reports whether a client should dial again by itself after this close code. Codes that this protocol does
// not name count as a lost link: reconnect.
func (c CloseCode) Reconnect() bool {
	return c != CloseNoAccess && c != CloseReplaced
}
