package hub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// ErrNoOwnToken means that a device uses a token for apps, so it has no token of its own to replace.
var ErrNoOwnToken = errors.New("this device has no token of its own: it comes with the token of an app, so replace that (hermes-mobile token), or pair the device")

// ErrTokenEnded means that the token has expired, and the request does not say when the new one expires.
var ErrTokenEnded = errors.New("the token of this device has expired: set the lifetime of the new one with --expires")

// Rotate replaces a device's own token. The device gets the new token at its next hello, and the
// old one is invalid as soon as the device has acknowledged the new one. Until then both are valid,
// so a lost response locks no device out. A live connection is closed, so that the device
// reconnects at once. expires is when the new token expires: zero for never, nil for the present
// expiry.
func (o *Owner) Rotate(ctx context.Context, id string, expires *time.Time) error {
	by := audit.From(ctx)
	return o.ask(ctx, id, func(d *device, b *batch, done func(error)) {
		dev := d.dev
		if dev.TokenHash == "" || dev.Revoked {
			done(ErrNoOwnToken)
			return
		}
		until, detail := dev.ExpiresAt, ""
		if expires != nil {
			until = *expires
		} else if dev.Expired(time.Now()) {
			done(ErrTokenEnded)
			return
		}
		if !until.IsZero() {
			detail = "expires " + until.UTC().Format(time.RFC3339)
		}
		b.do(func(tx *store.Tx) error {
			return errors.Join(tx.RotateToken(dev.N, until), tx.AddAudit(entryOf(by, "device.rotated", d.id, detail)))
		}, func(err error) {
			if err == nil {
				dev.Rotate, dev.ExpiresAt = true, until
				d.disconnect(frame.CloseGoingAway, "this device gets another token: connect again")
			}
			done(err)
		})
	})
}

// TokensChanged closes the connections whose token is no longer accepted, or for another device
// only. accepted holds the accepted tokens by their TokenSum.
func (o *Owner) TokensChanged(accepted map[uint64]access.Token) {
	for _, c := range o.hub.conns.list() {
		sum := c.token.Load()
		if sum == 0 {
			continue
		}
		switch t, ok := accepted[sum]; {
		case !ok:
			c.end(frame.CloseNoAccess, "the token was removed")
		case !t.For(c.claimed):
			c.end(frame.CloseNoAccess, "the token was bound to another device")
		}
	}
}

// MayRead reports whether the device of a link still has access.
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

// holds reports whether the token with which a device has authenticated is still valid: its own, or
// an app's.
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

// appTokenExpired is the error for a hello with an app token that has expired.
func appTokenExpired(t *access.Token) *frame.Error {
	return &frame.Error{Code: frame.AuthFailed, Message: fmt.Sprintf("this token expired on %s: ask the agent's owner for a new one", t.Expires.UTC().Format(time.DateOnly))}
}

// useNoted is the resolution of a token's last use.
const useNoted = time.Minute

// tokenUses limits the writes of last uses to one per token and [useNoted].
type tokenUses struct {
	mu    sync.Mutex
	noted map[string]time.Time
}

// due reports whether a use has to be stored.
func (u *tokenUses) due(label string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, ok := u.noted[label]; ok && now.Sub(at) < useNoted && !now.Before(at) {
		return false
	}
	if u.noted == nil {
		u.noted = map[string]time.Time{}
	}
	u.noted[label] = now
	return true
}

// noteUse stores that an app's token was used, without waiting for it.
func (h *Hub) noteUse(label string) {
	now := time.Now()
	if !h.uses.due(label, now) {
		return
	}
	h.work.Add(1)
	h.store.Go(func(tx *store.Tx) error { return tx.UseToken(label, now) }, func(err error) {
		defer h.work.Done()
		if err != nil {
			h.storeFailed("note the use of a token", err)
		}
	})
}
