package store

import (
	"context"
	"database/sql"
	"time"
)

// Aging counts the old entries in a device's outbox.
type Aging struct {
	Device string
	Count  int // entries from before the given time
	Oldest time.Time
}

// Aging returns the devices with outbox entries from before a time, those with the oldest first, at
// most limit of them. The first entry of an outbox is its oldest, so a device without old entries
// costs one row.
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
