package store

import (
	"context"
	"database/sql"
	"time"
)

// AddInvite stores the hash of a one-time pairing code.
func (t *Tx) AddInvite(hash string, expires time.Time) error {
	return t.must("invite.add", hash, expires.UnixMilli())
}

// Invited reports whether a one-time pairing code is valid for a device, without using it up; again: it has used it before,
// which it may since the answer with its token may have been lost.
func (s *Store) Invited(ctx context.Context, hash, device string, now time.Time) (ok, again bool, err error) {
	err = s.rows(ctx, "invite.valid", func(r *sql.Rows) error {
		var by string
		err := r.Scan(&by)
		ok, again = true, by != ""
		return err
	}, hash, device, now.UnixMilli())
	return ok, again, err
}

// RedeemInvite keeps a one-time pairing code for this device alone; ok is false when there is none that is valid for it.
func (t *Tx) RedeemInvite(hash, device string, now time.Time) (ok bool, err error) {
	changed, _, err := t.exec("invite.redeem", hash, device, now.UnixMilli())
	return changed > 0, err
}

// Redeemed reports whether there is a pairing code that a device has used and may use again.
func (s *Store) Redeemed(ctx context.Context, device string) (ok bool, err error) {
	err = s.rows(ctx, "invite.used", func(*sql.Rows) error { ok = true; return nil }, device)
	return ok, err
}

// ForgetInvites drops the pairing codes that a device has used.
func (t *Tx) ForgetInvites(n int64) error { return t.must("invite.forget", n) }

// SetMeta stores a value of the whole installation.
func (t *Tx) SetMeta(key string, value []byte) error { return t.must("meta.set", key, value) }

// AddMeta stores a value unless there is one already.
func (t *Tx) AddMeta(key string, value []byte) error { return t.must("meta.add", key, value) }

// Meta returns a value of the whole installation, nil when there is none.
func (s *Store) Meta(ctx context.Context, key string) ([]byte, error) {
	var v []byte
	err := s.rows(ctx, "meta.get", func(r *sql.Rows) error { return r.Scan(&v) }, key)
	return v, err
}

// Hashes returns the hashes of all files that something refers to.
func (s *Store) Hashes(ctx context.Context) (map[string]bool, error) {
	list, err := s.strings(ctx, "hash.all")
	set := make(map[string]bool, len(list))
	for _, h := range list {
		set[h] = true
	}
	return set, err
}
