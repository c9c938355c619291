package store

import (
	"context"
	"database/sql"
	"time"
)

// PairingCodes reads the pairing codes.
type PairingCodes struct{ s *Store }

// PairingCodes returns the pairing codes, for reading.
func (s *Store) PairingCodes() PairingCodes { return PairingCodes{s} }

// PairingCodesTx changes the pairing codes.
type PairingCodesTx struct{ t *Tx }

// PairingCodes returns the pairing codes, for changing.
func (t *Tx) PairingCodes() PairingCodesTx { return PairingCodesTx{t} }

// PairingCode is a pairing code. The store has only its hash.
type PairingCode struct {
	Hash    string
	Expires time.Time
	User    string        // of its device; empty: a new user
	Trusted bool          // its device may answer cards at once
	Life    time.Duration // lifetime of its device's own token; 0: it doesn't expire
	Device  string        // id of the device that redeemed it and may again; empty: none
}

// Add stores a pairing code.
func (p PairingCodesTx) Add(i PairingCode) error {
	return p.t.must("invite.add", i.Hash, i.Expires.UnixMilli(), i.User, i.Trusted, i.Life.Milliseconds())
}

// Valid returns a pairing code that is valid for a device, without redeeming it, nil if it isn't. A
// code stays valid for the device that redeemed it, because the answer with its token may have been
// lost.
func (p PairingCodes) Valid(ctx context.Context, hash, device string, now time.Time) (*PairingCode, error) {
	var found *PairingCode
	err := p.s.rows(ctx, "invite.valid", func(r *sql.Rows) error {
		i := &PairingCode{}
		var expires, life int64
		err := r.Scan(&i.Hash, &expires, &i.User, &i.Trusted, &life, &i.Device)
		i.Expires, i.Life = time.UnixMilli(expires), time.Duration(life)*time.Millisecond
		found = i
		return err
	}, hash, device, now.UnixMilli())
	return found, err
}

// Redeem binds a pairing code to a device that comes as a user. ok is false if no such code is
// valid for it, if the code belongs to another user, or if it names no user and the user is known
// (UserKnown).
func (p PairingCodesTx) Redeem(hash, device, user string, now time.Time) (ok bool, err error) {
	changed, _, err := p.t.exec("invite.redeem", hash, device, now.UnixMilli(), user)
	return changed > 0, err
}

// Redeemed reports whether a device has redeemed a pairing code that it may redeem again.
func (p PairingCodes) Redeemed(ctx context.Context, device string) (ok bool, err error) {
	err = p.s.rows(ctx, "invite.used", func(*sql.Rows) error { ok = true; return nil }, device)
	return ok, err
}

// Forget removes the pairing codes that a device has redeemed.
func (p PairingCodesTx) Forget(n int64) error { return p.t.must("invite.forget", n) }

// ForgetUser removes the pairing codes that name a user, or that a device of the user has redeemed.
func (p PairingCodesTx) ForgetUser(user string) error { return p.t.must("invite.user", user) }
