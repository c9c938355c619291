package store

import (
	"context"
	"database/sql"
	"time"
)

// FrontKey is a key by which a program uses the API as a user.
type FrontKey struct {
	ID         string // stands for the key where that must not be shown
	Hash       string // of the key
	User, Name string // id and name of the user
	Label      string
	CreatedAt  time.Time
	Until      time.Time // zero: for ever
	UsedAt     time.Time // zero: never
}

const frontKey = `SELECT k.id, k.hash, k.user_id, u.name, k.label, k.created_at, k.until, k.used_at FROM front_key k JOIN front_user u ON u.id=k.user_id`

func (s *Store) frontKeys(ctx context.Context, name string, args ...any) ([]*FrontKey, error) {
	var list []*FrontKey
	err := s.rows(ctx, name, func(r *sql.Rows) error {
		k := &FrontKey{}
		var created, until, used int64
		err := r.Scan(&k.ID, &k.Hash, &k.User, &k.Name, &k.Label, &created, &until, &used)
		k.CreatedAt, k.Until, k.UsedAt = milli(created), milli(until), milli(used)
		list = append(list, k)
		return err
	}, args...)
	return list, err
}

// FrontKeys returns all keys, by the names of their users.
func (s *Store) FrontKeys(ctx context.Context) ([]*FrontKey, error) {
	return s.frontKeys(ctx, "front_key.list")
}

// FrontKey returns a key by its hash, nil when there is none.
func (s *Store) FrontKey(ctx context.Context, hash string) (*FrontKey, error) {
	return first(s.frontKeys(ctx, "front_key.hash", hash))
}

// FrontKeyByID returns a key by what stands for it, nil when there is none.
func (s *Store) FrontKeyByID(ctx context.Context, id string) (*FrontKey, error) {
	return first(s.frontKeys(ctx, "front_key.id", id))
}

func first(list []*FrontKey, err error) (*FrontKey, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// AddFrontKey stores a new key.
func (t *Tx) AddFrontKey(k FrontKey, now time.Time) error {
	var until int64
	if !k.Until.IsZero() {
		until = k.Until.UnixMilli()
	}
	return t.must("front_key.add", k.ID, k.Hash, k.User, k.Label, now.UnixMilli(), until)
}

// UseFrontKey notes that a key was used.
func (t *Tx) UseFrontKey(id string, now time.Time) error {
	return t.must("front_key.use", now.UnixMilli(), id)
}

// RemoveFrontKey drops a key.
func (t *Tx) RemoveFrontKey(id string) error { return t.must("front_key.remove", id) }
