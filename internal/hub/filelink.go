package hub

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/store"
)

// A link to a file is for one device, and works no longer than its access: in the place of the device it names the life of the
// device's outbox, which revoking ends, and the app token by which the device was let in.

// linkLife is how long a link to a large file is valid (doc/protocol.md §5).
const linkLife = time.Hour

// linkOwner begins what a link of a device says, which tells it from links of gateways.
const linkOwner = "device\n"

// link is where the device can fetch a file for a while.
func (s *session) link(hash, name, mime string) string {
	base := s.conn.base
	if s.hub.PublicURL != "" {
		base = s.hub.PublicURL
	}
	owner := linkOwner + s.dev.Epoch + "\n" + strconv.FormatUint(s.conn.token.Load(), 16) + "\n" + s.id
	return base + s.hub.Links.Sign(owner, hash, name, mime, time.Now().Add(linkLife))
}

// MayRead reports whether the device that a link was made for still has access.
func (h *Hub) MayRead(ctx context.Context, owner string) (bool, error) {
	rest, ours := strings.CutPrefix(owner, linkOwner)
	parts := strings.SplitN(rest, "\n", 3)
	if !ours || len(parts) != 3 {
		return false, nil
	}
	sum, err := strconv.ParseUint(parts[1], 16, 64)
	if err != nil {
		return false, nil
	}
	dev, err := h.store.Device(ctx, parts[2])
	if err != nil || dev == nil {
		return false, err
	}
	return dev.Epoch == parts[0] && !dev.Revoked && h.holds(dev, sum), nil
}

// holds reports whether the token by which a device was let in is still good: its own, or an app's.
func (h *Hub) holds(dev *store.Device, sum uint64) bool {
	switch {
	case !dev.Bound():
		return false
	case sum == 0:
		return dev.Label == ownLabel(dev.ID) && dev.TokenHash != "" && !dev.Expired(time.Now())
	}
	t, ok := h.Tokens.MatchHash(func(secret [32]byte) bool { return sumOf(secret) == sum })
	return ok && t.Label == dev.Label && t.For(dev.ID) && !t.Expired(time.Now())
}
