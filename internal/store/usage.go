package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"
)

// Uploaded is how many bytes an account, which is a device or a token, has stored on a day.
type Uploaded struct {
	Account    string
	Day, Bytes int64
}

// SetUploaded stores the count of an account. It ignores a smaller count than the stored one,
// because the count of a day only grows.
func (t *Tx) SetUploaded(u Uploaded) error {
	return t.must("upload.set", u.Account, u.Day, u.Bytes)
}

// Uploaded returns the counts since a day.
func (s *Store) Uploaded(ctx context.Context, day int64) ([]Uploaded, error) {
	var list []Uploaded
	err := s.rows(ctx, "upload.day", func(r *sql.Rows) error {
		var u Uploaded
		err := r.Scan(&u.Account, &u.Day, &u.Bytes)
		list = append(list, u)
		return err
	}, day)
	return list, err
}

// journalLimit makes SQLite truncate its journal to this many bytes when it starts over. Otherwise
// the file stays as large as the largest transaction made it.
const journalLimit = "journal_size_limit(16777216)"

// Reusable returns the free bytes inside the database. They are used before it grows.
func (s *Store) Reusable(ctx context.Context) (bytes int64, err error) {
	err = s.rows(ctx, "db.free", func(r *sql.Rows) error { return r.Scan(&bytes) })
	return bytes, err
}

// Size returns the size of the database and its journal on the disk, in bytes.
func (s *Store) Size() int64 {
	var size int64
	for _, path := range []string{s.path, s.path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// Compact rewrites the database only if little is left and much is gained, because the writer waits
// meanwhile.
const (
	compactFree  = 32 << 20 // minimum of free pages, in bytes
	compactLive  = 32 << 20 // maximum of bytes to copy
	compactParts = 3        // minimum ratio of free to live bytes
	compactTime  = 5 * time.Second
)

// Compact shrinks a database that was once much larger. It does nothing if the gain is small or the
// work long, because free pages are reused anyway. freed is in bytes.
func (s *Store) Compact(ctx context.Context) (freed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, compactTime)
	defer cancel()
	db, err := sql.Open("sqlite", source(s.path)) // the readers' connections are read-only
	if err != nil {
		return 0, fmt.Errorf("compact the store: %w", err)
	}
	defer func() { _ = db.Close() }() // every statement has reported its error
	db.SetMaxOpenConns(1)
	var pages, free, page int64
	for _, p := range []struct {
		name string
		into *int64
	}{{"page_count", &pages}, {"freelist_count", &free}, {"page_size", &page}} {
		if err := db.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(p.into); err != nil {
			return 0, fmt.Errorf("compact the store: %w", err)
		}
	}
	live := pages - free
	if free*page < compactFree || live*page > compactLive || free < compactParts*live {
		return 0, nil
	}
	before := s.Size()
	for _, text := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return 0, fmt.Errorf("compact the store: %w", err)
		}
	}
	return max(before-s.Size(), 0), nil
}
