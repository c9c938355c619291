package store

import (
	"context"
	"database/sql"
	"time"
)

// APIKey is a key by which a program uses the API as a user.
type APIKey struct {
	ID         string // identifies the key where the key itself must not appear
	Hash       string // of the key
	User, Name string // id and name of the user
	Label      string
	CreatedAt  time.Time
	Until      time.Time // zero: it doesn't expire
	UsedAt     time.Time // zero: never
}

const frontKey = `SELECT k.id, k.hash, k.user_id, u.name, k.label, k.created_at, k.until, k.used_at FROM front_key k JOIN front_user u ON u.id=k.user_id`

func (a API) keys(ctx context.Context, name string, args ...any) ([]*APIKey, error) {
	var list []*APIKey
	err := a.s.rows(ctx, name, func(r *sql.Rows) error {
		k := &APIKey{}
		var created, until, used int64
		err := r.Scan(&k.ID, &k.Hash, &k.User, &k.Name, &k.Label, &created, &until, &used)
		k.CreatedAt, k.Until, k.UsedAt = milli(created), milli(until), milli(used)
		list = append(list, k)
		return err
	}, args...)
	return list, err
}

// Keys returns all keys, sorted by the names of their users.
func (a API) Keys(ctx context.Context) ([]*APIKey, error) {
	return a.keys(ctx, "front_key.list")
}

// Key returns the key with a hash, nil if there is none.
func (a API) Key(ctx context.Context, hash string) (*APIKey, error) {
	return first(a.keys(ctx, "front_key.hash", hash))
}

// KeyByID returns the key with an id, nil if there is none.
func (a API) KeyByID(ctx context.Context, id string) (*APIKey, error) {
	return first(a.keys(ctx, "front_key.id", id))
}

func first(list []*APIKey, err error) (*APIKey, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// AddKey stores a new key.
func (a APITx) AddKey(k APIKey, now time.Time) error {
	var until int64
	if !k.Until.IsZero() {
		until = k.Until.UnixMilli()
	}
	return a.t.must("front_key.add", k.ID, k.Hash, k.User, k.Label, now.UnixMilli(), until)
}

// UseKey records the use of a key.
func (a APITx) UseKey(id string, now time.Time) error {
	return a.t.must("front_key.use", now.UnixMilli(), id)
}

// RemoveKey removes a key.
func (a APITx) RemoveKey(id string) error { return a.t.must("front_key.remove", id) }
