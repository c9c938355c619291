package store

import (
	"context"
	"database/sql"
	"time"
)

// Retention is how long things are kept.
type Retention struct {
	IDs     time.Duration // message and delivery ids, for detecting duplicates
	Records time.Duration // of deliveries
	Outbox  time.Duration // entries that a device didn't fetch
	Entries int           // of one device's outbox

	Deliveries int // maximum of delivery records whose ids have expired; 0: no maximum
}

// keepSaid is how long the texts of agents are kept. Agents repeat a text soon or never.
const keepSaid = time.Hour

// keepQuotes is how many messages of a device can be quoted.
const keepQuotes = 200

// sweepPiece is how many rows of a sweep are in one transaction. A concurrent write waits for no
// more.
const sweepPiece = 256

// Sweep removes what has expired. Finding that among a million rows takes long, so readers search,
// and the writer deletes in pieces.
func (s *Store) Sweep(ctx context.Context, keep Retention, now time.Time) error {
	for _, find := range []struct {
		name string
		arg  any
	}{{"outbox.old", now.Add(-keep.Outbox).UnixMilli()}, {"outbox.many", keep.Entries}} {
		err := s.sweep(ctx, find.name, 1, func(t *Tx, key []any) error { return t.Expire(key[0].(int64), key[1].(int64), now) }, find.arg)
		if err != nil {
			return err
		}
	}
	day, unfetched := now.Add(-keep.IDs).UnixMilli(), now.Add(-keep.Outbox).UnixMilli()
	for _, rows := range []struct {
		find, drop string
		arg        any
	}{
		{"said.old", "said.gone", now.Add(-keepSaid).UnixMilli()},
		{"quote.old", "quote.gone", unfetched},
		{"quote.many", "quote.gone", keepQuotes},
		{"notice.old", "notice.gone", unfetched},
		{"inbox.old", "inbox.gone", day},
		{"card.old", "card.gone", day},
		{"delivery.old", "delivery.stale", day},
		{"delivery.past", "delivery.gone", now.Add(-keep.Records).UnixMilli()},
	} {
		err := s.sweep(ctx, rows.find, sweepPiece, func(t *Tx, key []any) error { return t.must(rows.drop, key...) }, rows.arg)
		if err != nil {
			return err
		}
	}
	if keep.Deliveries > 0 {
		err := s.sweep(ctx, "delivery.many", sweepPiece, func(t *Tx, key []any) error { return t.must("delivery.gone", key...) }, keep.Deliveries)
		if err != nil {
			return err
		}
	}
	return s.Do(func(t *Tx) error {
		if err := t.API().sweep(now); err != nil {
			return err
		}
		if err := t.must("upload.sweep", now.Unix()/86400); err != nil {
			return err
		}
		return t.must("invite.sweep", now.UnixMilli())
	})
}

// sweep calls drop with the key of each row that a query finds, in transactions of piece rows.
func (s *Store) sweep(ctx context.Context, find string, piece int, drop func(t *Tx, key []any) error, args ...any) error {
	var keys [][]any
	flush := func() error {
		list := keys
		keys = nil
		return s.Do(func(t *Tx) error {
			for _, key := range list {
				if err := drop(t, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := s.rows(ctx, find, func(r *sql.Rows) error {
		key, err := scanKey(r)
		if keys = append(keys, key); err == nil && len(keys) == piece {
			err = flush()
		}
		return err
	}, args...)
	if err != nil || len(keys) == 0 {
		return err
	}
	return flush()
}

// scanKey reads all columns of a row.
func scanKey(r *sql.Rows) ([]any, error) {
	columns, err := r.Columns()
	if err != nil {
		return nil, err
	}
	key, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range key {
		into[i] = &key[i]
	}
	return key, r.Scan(into...)
}
