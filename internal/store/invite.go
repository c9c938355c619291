package store

import (
	"context"
	"database/sql"
	"time"
)

// Invite is a pairing code, which the store knows by its hash only.
type Invite struct {
	Hash    string
	Expires time.Time
	User    string        // that its device belongs to; empty: a user whom nobody knows yet
	Trusted bool          // its device may answer cards at once
	Life    time.Duration // of its device's own token, in milliseconds; 0: for ever
	Device  string        // id of the one that has redeemed it, which may again; empty: none
}

// AddInvite stores a pairing code.
func (t *Tx) AddInvite(i Invite) error {
	return t.must("invite.add", i.Hash, i.Expires.UnixMilli(), i.User, i.Trusted, i.Life.Milliseconds())
}

// Invite returns a pairing code that is valid for a device, without redeeming it; nil where it is not. A code that the device
// has redeemed is valid for it still, since the answer with its token may have been lost.
func (s *Store) Invite(ctx context.Context, hash, device string, now time.Time) (*Invite, error) {
	var found *Invite
	err := s.rows(ctx, "invite.valid", func(r *sql.Rows) error {
		i := &Invite{}
		var expires, life int64
		err := r.Scan(&i.Hash, &expires, &i.User, &i.Trusted, &life, &i.Device)
		i.Expires, i.Life = time.UnixMilli(expires), time.Duration(life)*time.Millisecond
		found = i
		return err
	}, hash, device, now.UnixMilli())
	return found, err
}

// RedeemInvite keeps a pairing code for this device alone, which comes as a user. ok is false when no code is valid for it, when
// the code is another user's, and when it names none and the user is known: see UserKnown.
func (t *Tx) RedeemInvite(hash, device, user string, now time.Time) (ok bool, err error) {
	changed, _, err := t.exec("invite.redeem", hash, device, now.UnixMilli(), user)
	return changed > 0, err
}

// Redeemed reports whether there is a pairing code that a device has redeemed and may redeem again.
func (s *Store) Redeemed(ctx context.Context, device string) (ok bool, err error) {
	err = s.rows(ctx, "invite.used", func(*sql.Rows) error { ok = true; return nil }, device)
	return ok, err
}

// ForgetInvites drops the pairing codes that a device has redeemed.
func (t *Tx) ForgetInvites(n int64) error { return t.must("invite.forget", n) }

// ForgetInvitesFor drops the pairing codes that name a user, or that a device of the user has redeemed.
func (t *Tx) ForgetInvitesFor(user string) error { return t.must("invite.user", user) }
