package hub

import (
	"context"
	"net/netip"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
)

// grant says what the token of a hello permits.
type grant struct {
	sum   uint64 // of the app token, 0 for a device's own
	label string // that the device is bound to
	kind  access.Kind
	own   bool   // by the device's own token, or by a pairing code
	hash  string // of the device's own token
	pair  string // hash of a pairing code that must still be redeemed
	addr  netip.Addr

	expires time.Time // of the app token; zero: never
}

// grant authenticates a hello. It counts wrong tokens against the address.
func (h *Hub) grant(f *frame.Hello, addr netip.Addr) (grant, *frame.Error) {
	if after, blocked := h.Guard.Blocked(addr); blocked {
		return grant{}, &frame.Error{Code: frame.RateLimited, Message: "too many wrong tokens came from this address: wait before the next try", RetryAfter: seconds(after)}
	}
	if f.Pair != "" {
		return grant{label: ownLabel(f.Device.ID), own: true, pair: access.HashSecret(access.NormalizeCode(f.Pair)), addr: addr}, nil
	}
	if t, ok := h.Tokens.Match(f.Token); ok {
		switch {
		case !t.For(f.Device.ID):
			return grant{}, &frame.Error{Code: frame.Forbidden, Message: "this token is bound to another device: connect under the id of that device, or ask the agent's owner for a token of this one"}
		case t.Expired(time.Now()):
			return grant{}, appTokenExpired(&t)
		}
		h.noteUse(t.Label)
		return grant{label: t.Label, kind: t.Kind, addr: addr, sum: TokenSum(f.Token), expires: t.Expires}, nil
	}
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Second)
	defer cancel()
	hash := access.HashSecret(f.Token)
	dev, err := h.store.DeviceByToken(ctx, hash)
	switch {
	case err != nil:
		h.storeFailed("look up a token", err)
		return grant{}, &frame.Error{Code: frame.Internal, Message: "the server can't read its store: try again later"}
	case dev == nil:
		h.Guard.Wrong(addr)
		return grant{}, &frame.Error{Code: frame.AuthFailed, Message: "the token is wrong: ask the agent's owner for the right one"}
	case dev.ID != f.Device.ID:
		return grant{}, &frame.Error{Code: frame.Forbidden, Message: "this token belongs to another device: pair this one"}
	}
	return grant{label: ownLabel(dev.ID), own: true, hash: hash, addr: addr}, nil
}
