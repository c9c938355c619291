package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// smallTables have few rows however much is said, so that looking at all of them costs nothing.
// CONSTANT is the one row of a SELECT without a table.
var smallTables = map[string]bool{"device": true, "front_user": true, "invite": true, "front_token": true, "passkey": true, "upload_day": true, "CONSTANT": true}

// smallIndex holds what is unfinished only.
const smallIndex = "USING INDEX inbox_open"

var scanned = regexp.MustCompile(`^SCAN (\w+)`)

// There is one writer: while it looks for a row among all, whoever stores something waits. So it
// finds rows by an index.
func TestWritesFindRowsByAnIndex(t *testing.T) {
	s := open(t, t.TempDir())
	for name, text := range writes {
		for _, step := range explain(t, s, text) {
			if m := scanned.FindStringSubmatch(step); m != nil && !smallTables[m[1]] && !strings.HasSuffix(step, smallIndex) {
				t.Errorf("%s looks at all rows of a table: %s", name, step)
			}
		}
	}
}

// explain returns what a statement would do.
func explain(t *testing.T, s *Store, text string) (plan []string) {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	rows, err := s.read.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, args...)
	ok(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		ok(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	ok(t, rows.Err())
	return plan
}

// More than one piece of a sweep goes, and nothing that has time left.
func TestSweepInPieces(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	const old, fresh = 2*sweepPiece + 3, 5
	do(t, s, func(tx *Tx) error {
		for i := range old + fresh {
			at := t0
			if i >= old {
				at = t0.Add(2 * time.Hour)
			}
			id := fmt.Sprint(i)
			if _, _, err := tx.Accept(dev, id, Done, nil, "", at); err != nil {
				return err
			}
			if err := tx.NoteSaid(dev, int64(i+1), id, at); err != nil {
				return err
			}
			if err := tx.Append(dev, int64(i+1), KindMessage, []byte("{}"), "", at); err != nil {
				return err
			}
		}
		return nil
	})
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Records: time.Hour, Outbox: time.Hour, Entries: 10_000}, t0.Add(2*time.Hour)))
	for i := range old + fresh {
		kept := i >= old
		if known := value[bool](t)(s.Seen(ctx, dev, fmt.Sprint(i))); known != kept {
			t.Fatalf("id %d is known: %v", i, known)
		}
		if known := value[bool](t)(s.Said(ctx, dev, int64(i+1), fmt.Sprint(i))); known != kept {
			t.Fatalf("reply %d is known: %v", i, known)
		}
	}
	if count, newest, _, err := s.OutboxBounds(ctx, dev); err != nil || count != fresh || newest != old+fresh {
		t.Fatalf("%d entries up to %d wait, want %d up to %d (%v)", count, newest, fresh, old+fresh, err)
	}
}
