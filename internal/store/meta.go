package store

import (
	"context"
	"database/sql"
)

// SetMeta stores a value of the whole installation.
func (t *Tx) SetMeta(key string, value []byte) error { return t.must("meta.set", key, value) }

// AddMeta stores a value unless there is one.
func (t *Tx) AddMeta(key string, value []byte) error { return t.must("meta.add", key, value) }

// Meta returns a value of the whole installation, nil if there is none.
func (s *Store) Meta(ctx context.Context, key string) ([]byte, error) {
	var v []byte
	err := s.rows(ctx, "meta.get", func(r *sql.Rows) error { return r.Scan(&v) }, key)
	return v, err
}

// Hashes returns the hashes of all files that are in use.
func (s *Store) Hashes(ctx context.Context) (map[string]bool, error) {
	list, err := s.strings(ctx, "hash.all")
	set := make(map[string]bool, len(list))
	for _, h := range list {
		set[h] = true
	}
	return set, err
}
