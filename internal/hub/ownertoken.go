package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// ErrNoOwnToken: a device that came with a token of apps has none of its own that could be replaced.
var ErrNoOwnToken = errors.New("this device has no token of its own: it comes with the token of an app, so replace that (hermes-mobile token), or pair the device")

// ErrTokenEnded: the token has expired, and the request does not say when the new one expires.
var ErrTokenEnded = errors.New("the token of this device has expired: set the lifetime of the new one with --expires")

// Rotate replaces a device's own token. The device gets the new token at its next hello, and the old one is invalid as soon as the
// device has acknowledged the new one. Until then both are valid, so a lost response locks no device out. A live connection is closed,
// so that the device reconnects at once. expires is when the new token expires: zero for never, nil for the present expiry.
func (h *Hub) Rotate(ctx context.Context, id string, expires *time.Time) error {
	by := audit.From(ctx)
	return h.ask(ctx, id, func(s *session, b *batch, done func(error)) {
		d := s.dev
		if d.TokenHash == "" || d.Revoked {
			done(ErrNoOwnToken)
			return
		}
		until, detail := d.ExpiresAt, ""
		if expires != nil {
			until = *expires
		} else if d.Expired(time.Now()) {
			done(ErrTokenEnded)
			return
		}
		if !until.IsZero() {
			detail = "expires " + until.UTC().Format(time.RFC3339)
		}
		b.do(func(tx *store.Tx) error {
			return errors.Join(tx.RotateToken(d.N, until), tx.AddAudit(entryOf(by, "device.rotated", s.id, detail)))
		}, func(err error) {
			if err == nil {
				d.Rotate, d.ExpiresAt = true, until
				s.disconnect(frame.CloseGoingAway, "this device gets another token: connect again")
			}
			done(err)
		})
	})
}

// rotated updates the device's tokens for a hello with the token that has this hash: the new token becomes the only one, and if the
// owner asked for a rotation another token is made.
func (n *entrance) rotated(came string) {
	d := &n.dev
	switch {
	case d.NextHash != "" && d.NextHash == came:
		d.TokenHash, d.NextHash, d.Rotate, n.renewed = came, "", false, true
	case d.Rotate:
		n.token = access.NewSecret()
		d.NextHash = access.HashSecret(n.token)
	}
}

// tokenKept: the device has stored the token from its ready frame. The code or token that it connected with is invalid from now on.
func (s *session) tokenKept(b *batch, c *conn) {
	given := c.given
	switch {
	case given == "":
		return
	case given == s.dev.TokenHash:
		b.then(s.paired)
	case given == s.dev.NextHash:
		by := audit.By{Actor: audit.ActorDevice(s.id), Origin: c.addr.String()}
		b.do(func(tx *store.Tx) error {
			return errors.Join(tx.RenewToken(s.dev.N, given), tx.AddAudit(entryOf(by, "device.renewed", s.id, "")))
		}, func(err error) {
			if err != nil {
				return // the next hello does it
			}
			if d := s.dev; d.NextHash == given {
				d.TokenHash, d.NextHash, d.Rotate = given, "", false
			}
			s.hub.log.Info("a device has a new token", "device", s.id)
		})
	}
}

// awaitExpiry closes the live connection when the token expires that it was authenticated with.
func (s *session) awaitExpiry() {
	stop(&s.timers.expiry)
	if c := s.conn; c != nil && !c.expires.IsZero() {
		s.start(&s.timers.expiry, time.Until(c.expires), tokenEnds{})
	}
}

// tokenEnds: the token of the live connection may have expired.
type tokenEnds struct{}

func (tokenEnds) apply(s *session, b *batch) {
	b.then(func() {
		s.timers.expiry = nil
		switch c := s.conn; {
		case c == nil:
		case time.Now().Before(c.expires): // the clock was set back
			s.awaitExpiry()
		default:
			s.hub.log.Info("the token of a device has expired", "device", s.id)
			s.disconnect(frame.CloseNoAccess, "the token has expired")
		}
	})
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
