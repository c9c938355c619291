package frame

// Code is the reason in an error frame (doc/protocol.md §10). A later server may send codes that
// are not listed here.
type Code string

// The error codes. Each says when the server sends it and whether a retry can help.
const (
	// AuthFailed means that the token or pairing code is wrong, or the device or user is not
	// allowed. The server closes with 1008. Do not retry.
	AuthFailed Code = "auth_failed"
	// Unsupported means that the server does not know this frame type. The connection stays open.
	// Do not retry.
	Unsupported Code = "unsupported_frame"
	// Forbidden means that this connection may not do that. The device is bound to another token,
	// for example, or the card belongs to another device. Do not retry.
	Forbidden Code = "forbidden"
	// TooBig means that a frame, text, file or upload exceeds its limit. Do not retry with the same
	// content.
	TooBig Code = "too_big"
	// BadFrame means that the frame is malformed or contradicts an earlier one. Do not retry with
	// the same content.
	BadFrame Code = "bad_frame"
	// DeviceOffline means that the recipient of a delivery is unknown or not approved, is offline
	// while the delivery requires it live, or has a full outbox. Retry later if the device may come
	// back.
	DeviceOffline Code = "device_offline"
	// RateLimited means that the device sends too many requests. Retry after Error.RetryAfter
	// seconds.
	RateLimited Code = "rate_limited"
	// NoSpace means that the server has no space for this file: its storage limit is reached, its
	// disk is nearly full, or the device has used its daily quota. Messages without files still
	// work. Retry the file later, after Error.RetryAfter seconds where the server gives them.
	NoSpace Code = "no_space"
	// Internal means that the server failed, for example because its disk is full. It stored
	// nothing. Retry later with the same id.
	Internal Code = "internal"
)

// Retry reports whether sending the same frame again, later, can succeed.
func (c Code) Retry() bool {
	return c == DeviceOffline || c == RateLimited || c == NoSpace || c == Internal
}

// CloseCode is the status code of a WebSocket close frame (RFC 6455 §7.4; doc/protocol.md §1).
type CloseCode int

// The close codes the server uses, and what each asks of the client.
const (
	// CloseGoingAway means that the server stops or restarts. Reconnect.
	CloseGoingAway CloseCode = 1001
	// CloseNoAccess means that the server denies access. Do not reconnect; tell the user.
	CloseNoAccess CloseCode = 1008
	// CloseTooBig means that a frame was larger than MaxFrame. Reconnect, and do not send that
	// frame again.
	CloseTooBig CloseCode = 1009
	// CloseTryLater means that the server is overloaded, the client reads too slowly, or it sent no
	// hello in time. Reconnect with back-off. Nothing durable is lost.
	CloseTryLater CloseCode = 1013
	// CloseReplaced means that a newer connection of the same device took over. Do not reconnect
	// automatically.
	CloseReplaced CloseCode = 4409
)

// Reconnect reports whether a client should reconnect automatically after this close code. A code
// that this protocol does not name counts as a lost connection: reconnect.
func (c CloseCode) Reconnect() bool {
	return c != CloseNoAccess && c != CloseReplaced
}
