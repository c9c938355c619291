package store

import (
	"context"
	"database/sql"
	"time"
)

// Passkey is a credential that opens the admin UI.
type Passkey struct {
	ID         string // of the credential, in base64url
	Name       string
	Credential []byte // what checking a login needs, as JSON
	CreatedAt  time.Time
	UsedAt     time.Time // zero: never
}

func (s *Store) passkeys(ctx context.Context, query string, args ...any) ([]Passkey, error) {
	var list []Passkey
	err := s.rows(ctx, query, func(r *sql.Rows) error {
		var p Passkey
		var created, used int64
		err := r.Scan(&p.ID, &p.Name, &p.Credential, &created, &used)
		p.CreatedAt, p.UsedAt = time.UnixMilli(created), timeOrZero(used)
		list = append(list, p)
		return err
	}, args...)
	return list, err
}

// Passkeys returns all passkeys, the oldest first.
func (s *Store) Passkeys(ctx context.Context) ([]Passkey, error) {
	return s.passkeys(ctx, "passkey.list")
}

// Passkey returns the passkey with an id, nil where there is none.
func (s *Store) Passkey(ctx context.Context, id string) (*Passkey, error) {
	list, err := s.passkeys(ctx, "passkey.id", id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// AddPasskey stores a passkey, unless there are most already or one has its id; added tells which.
func (t *Tx) AddPasskey(p Passkey, most int) (added bool, err error) {
	changed, _, err := t.exec("passkey.add", p.ID, p.Name, p.Credential, p.CreatedAt.UnixMilli(), most)
	return changed > 0, err
}

// RenamePasskey changes the name of a passkey; found tells whether there is one.
func (t *Tx) RenamePasskey(id, name string) (found bool, err error) {
	changed, _, err := t.exec("passkey.name", name, id)
	return changed > 0, err
}

// UsePasskey stores what a login changed of a passkey; found tells whether it is still there.
func (t *Tx) UsePasskey(id string, credential []byte, at time.Time) (found bool, err error) {
	changed, _, err := t.exec("passkey.used", credential, at.UnixMilli(), id)
	return changed > 0, err
}

// RemovePasskey drops a passkey; found tells whether there was one.
func (t *Tx) RemovePasskey(id string) (found bool, err error) {
	changed, _, err := t.exec("passkey.remove", id)
	return changed > 0, err
}
