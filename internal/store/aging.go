package store

import (
	"context"
	"database/sql"
	"time"
)

// Aging is what has waited long in a device's outbox.
type Aging struct {
	Device string
	Count  int // entries that are older than was asked for
	Oldest time.Time
}

// Aging returns the devices with outbox entries from before a time, those with the oldest first, at most limit of them. Within
// an outbox the first entry is the oldest, so a look costs one row for each device that has nothing old.
func (s *Store) Aging(ctx context.Context, before time.Time, limit int) ([]Aging, error) {
	var list []Aging
	err := s.rows(ctx, "outbox.aging", func(r *sql.Rows) error {
		var a Aging
		var at int64
		err := r.Scan(&a.Device, &at, &a.Count)
		a.Oldest = time.UnixMilli(at)
		list = append(list, a)
		return err
	}, before.UnixMilli(), limit)
	return list, err
}
