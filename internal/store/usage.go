package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"
)

// Uploaded is how many bytes an account, a device or a token, made the server store on a day.
type Uploaded struct {
	Account    string
	Day, Bytes int64
}

// SetUploaded stores the count of an account. A smaller one than is stored changes nothing: counts of one day only grow.
func (t *Tx) SetUploaded(u Uploaded) error {
	return t.must("upload.set", u.Account, u.Day, u.Bytes)
}

// Uploaded returns the counts from a day on.
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

// journalLimit makes SQLite cut its journal down to this many bytes when it begins anew. Without it the file stays as large as
// the largest transaction made it.
const journalLimit = "journal_size_limit(16777216)"

// Reusable returns the bytes of the database that are free within, and used before it grows.
func (s *Store) Reusable(ctx context.Context) (bytes int64, err error) {
	err = s.rows(ctx, "db.free", func(r *sql.Rows) error { return r.Scan(&bytes) })
	return bytes, err
}

// Size returns the bytes that the database and its journal take on the disk.
func (s *Store) Size() int64 {
	var size int64
	for _, path := range []string{s.path, s.path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// When Compact rewrites the database. The writer waits meanwhile, so what is left must be little, and the gain large.
const (
	compactFree  = 32 << 20 // free pages, in bytes, that are worth it
	compactLive  = 32 << 20 // bytes that may have to be copied
	compactParts = 3        // times as much must be free as is left
	compactTime  = 5 * time.Second
)

// Compact gives the disk back what a database that was much larger does not need any more. It does nothing where the gain is
// small or the work long: pages that are free are used again anyway. freed is in bytes.
func (s *Store) Compact(ctx context.Context) (freed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, compactTime)
	defer cancel()
	db, err := sql.Open("sqlite", source(s.path)) // the readers' connections may write nothing at all
	if err != nil {
		return 0, fmt.Errorf("compact the store: %w", err)
	}
	defer db.Close()
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
