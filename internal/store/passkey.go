package store

import (
	"context"
	"database/sql"
	"time"
)

// Passkeys reads the passkeys of the admin UI.
type Passkeys struct{ s *Store }

// Passkeys returns the passkeys, for reading.
func (s *Store) Passkeys() Passkeys { return Passkeys{s} }

// PasskeysTx changes the passkeys of the admin UI.
type PasskeysTx struct{ t *Tx }

// Passkeys returns the passkeys, for changing.
func (t *Tx) Passkeys() PasskeysTx { return PasskeysTx{t} }

// Passkey is a credential that opens the admin UI.
type Passkey struct {
	ID         string // of the credential, in base64url
	Name       string
	Credential []byte // the data for verifying a login, as JSON
	CreatedAt  time.Time
	UsedAt     time.Time // zero: never
}

func (p Passkeys) list(ctx context.Context, query string, args ...any) ([]Passkey, error) {
	var list []Passkey
	err := p.s.rows(ctx, query, func(r *sql.Rows) error {
		var k Passkey
		var created, used int64
		err := r.Scan(&k.ID, &k.Name, &k.Credential, &created, &used)
		k.CreatedAt, k.UsedAt = time.UnixMilli(created), timeOrZero(used)
		list = append(list, k)
		return err
	}, args...)
	return list, err
}

// List returns all passkeys, the oldest first.
func (p Passkeys) List(ctx context.Context) ([]Passkey, error) {
	return p.list(ctx, "passkey.list")
}

// Get returns the passkey with an id, nil if there is none.
func (p Passkeys) Get(ctx context.Context, id string) (*Passkey, error) {
	list, err := p.list(ctx, "passkey.id", id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Add stores a passkey unless there are already most, or one with its id. added says whether it
// did.
func (p PasskeysTx) Add(k Passkey, most int) (added bool, err error) {
	changed, _, err := p.t.exec("passkey.add", k.ID, k.Name, k.Credential, k.CreatedAt.UnixMilli(), most)
	return changed > 0, err
}

// Rename renames a passkey. found says whether it exists.
func (p PasskeysTx) Rename(id, name string) (found bool, err error) {
	changed, _, err := p.t.exec("passkey.name", name, id)
	return changed > 0, err
}

// Use stores what a login changed. found says whether the passkey still exists.
func (p PasskeysTx) Use(id string, credential []byte, at time.Time) (found bool, err error) {
	changed, _, err := p.t.exec("passkey.used", credential, at.UnixMilli(), id)
	return changed > 0, err
}

// Remove removes a passkey. found says whether it existed.
func (p PasskeysTx) Remove(id string) (found bool, err error) {
	changed, _, err := p.t.exec("passkey.remove", id)
	return changed > 0, err
}
