package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Counts of a day are kept over a restart, never become smaller, and go when their day is past.
func TestUploaded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	today := t0.Unix() / 86400
	rows := []Uploaded{{"device:a", today, 10}, {"device:a", today - 1, 7}, {"device:a", today - 2, 5}, {"token:main", today, 3}, {"token:main", today + 1, 4}, {"token:main", today + 2, 6}}
	do(t, s, func(tx *Tx) error {
		for _, r := range rows {
			if err := tx.SetUploaded(r); err != nil {
				return err
			}
		}
		return tx.SetUploaded(Uploaded{"device:a", today, 9})
	})
	ok(t, s.Close())
	s = open(t, dir)
	if got := value[[]Uploaded](t)(s.Uploaded(ctx, today)); !slices.Equal(got, []Uploaded{rows[0], rows[3], rows[4], rows[5]}) {
		t.Errorf("today and later: %+v", got)
	}
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0))
	if got := value[[]Uploaded](t)(s.Uploaded(ctx, 0)); !slices.Equal(got, []Uploaded{rows[1], rows[0], rows[3], rows[4]}) {
		t.Errorf("after the sweep: %+v", got)
	}
}

// The bytes of an outbox, and which entries go first to free some of them.
func TestOutboxBytes(t *testing.T) {
	s := open(t, t.TempDir())
	dev, other := device(t, s, "d"), device(t, s, "e")
	sizes := map[int64]int{3: 100, 5: 20_000, 6: 1, 9: 300} // numbers may be skipped; one body fills several pages
	do(t, s, func(tx *Tx) error {
		for seq, n := range sizes {
			if err := tx.Append(dev, seq, KindMessage, make([]byte, n), "", t0); err != nil {
				return err
			}
		}
		return tx.Append(other, 1, KindMessage, make([]byte, 5000), "", t0)
	})
	if count, newest, bytes, err := s.OutboxBounds(ctx, dev); err != nil || count != 4 || newest != 9 || bytes != 20_401 {
		t.Errorf("%d entries up to %d with %d bytes, %v", count, newest, bytes, err)
	}
	for after, want := range map[int64]int64{0: 20_401, 3: 20_301, 5: 301, 9: 0} {
		if got := value[int64](t)(s.OutboxBytes(ctx, dev, after)); got != want {
			t.Errorf("after %d there are %d bytes, want %d", after, got, want)
		}
	}
	for _, c := range []struct{ after, bytes, upTo, frees int64 }{{0, 1, 3, 100}, {0, 100, 3, 100}, {0, 101, 5, 20_100}, {3, 1, 5, 20_000}, {0, 1 << 40, 9, 20_401}, {9, 1, 0, 0}} {
		if upTo, frees, err := s.OutboxOldest(ctx, dev, c.after, c.bytes); err != nil || upTo != c.upTo || frees != c.frees {
			t.Errorf("to free %d after %d: up to %d, which frees %d (%v), want %d and %d", c.bytes, c.after, upTo, frees, err, c.upTo, c.frees)
		}
	}
}

// A database that was large gives its room back, also while it is used; one in which little is free
// is left alone.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dev := device(t, s, "d")
	if freed := value[int64](t)(s.Compact(ctx)); freed != 0 {
		t.Errorf("a new database gave %d bytes back", freed)
	}
	const many = 80
	for i := range int64(many) {
		do(t, s, func(tx *Tx) error { return tx.Append(dev, i+1, KindMessage, make([]byte, 1<<20), "", t0) })
	}
	full := s.Size()
	if freed := value[int64](t)(s.Compact(ctx)); freed != 0 || full < many<<20 {
		t.Errorf("a full database of %d bytes gave %d back", full, freed)
	}
	if free := value[int64](t)(s.Reusable(ctx)); free > 1<<20 {
		t.Errorf("%d bytes of a full database are free", free)
	}
	do(t, s, func(tx *Tx) error { return tx.Forget(dev, many-1) })
	if free := value[int64](t)(s.Reusable(ctx)); free < (many-2)<<20 || free > s.Size() {
		t.Errorf("%d bytes of an empty database are free", free)
	}
	freed := value[int64](t)(s.Compact(ctx))
	if freed < full/2 || s.Size() > 20<<20 {
		t.Errorf("%d bytes came back of %d, %d are left", freed, full, s.Size())
	}
	do(t, s, func(tx *Tx) error { return tx.Append(dev, many+1, KindMessage, []byte("after"), "", t0) })
	if out := value[[]Out](t)(s.Outbox(ctx, dev, 0, 10)); len(out) != 2 || len(out[0].Body) != 1<<20 || string(out[1].Body) != "after" {
		t.Errorf("%d entries are left", len(out))
	}
	ok(t, s.Close())
	if out := value[[]Out](t)(open(t, dir).Outbox(ctx, dev, 0, 10)); len(out) != 2 {
		t.Errorf("%d entries after a restart", len(out))
	}
}

// A large transaction makes the journal large once, and not for ever.
func TestJournalIsCutDown(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dev := device(t, s, "d")
	do(t, s, func(tx *Tx) error {
		for i := range int64(40) {
			if err := tx.Append(dev, i+1, KindMessage, make([]byte, 1<<20), "", t0); err != nil {
				return err
			}
		}
		return nil
	})
	journal := func() int64 {
		info, err := os.Stat(filepath.Join(dir, File+"-wal"))
		ok(t, err)
		return info.Size()
	}
	if journal() < 40<<20 {
		t.Skipf("the journal has %d bytes", journal())
	}
	for i := range int64(20) {
		do(t, s, func(tx *Tx) error { return appendRow(tx, dev, 100+i, t0) })
	}
	if n := journal(); n > 20<<20 {
		t.Errorf("the journal still has %d bytes", n)
	}
}

// Records of deliveries are kept for their time, but no more of them than a number, of those whose
// ids are forgotten.
func TestRecordsOfDeliveriesAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	add := func(from, to int, at time.Time) {
		do(t, s, func(tx *Tx) error {
			for i := from; i < to; i++ {
				if _, err := tx.Deliveries().Add(Delivery{Sender: "s", ID: fmt.Sprint(i), Source: "deliver", Message: fmt.Sprint(i)}, dev, int64(i), at); err != nil {
					return err
				}
			}
			return nil
		})
	}
	add(1, 101, t0.Add(-2*time.Hour))
	add(101, 121, t0)
	keep := Retention{IDs: time.Hour, Records: 24 * time.Hour, Outbox: time.Hour, Entries: 10, Deliveries: 50}
	ok(t, s.Sweep(ctx, keep, t0))
	count := 0
	ok(t, s.Deliveries().List(ctx, "", func(d Delivery) bool {
		if d.N <= 70 {
			t.Errorf("record %d is kept", d.N)
		}
		count++
		return true
	}))
	if count != 50 {
		t.Errorf("%d records are kept, want 50", count)
	}
	keep.Deliveries = 5 // less than the ids that must be known again
	ok(t, s.Sweep(ctx, keep, t0))
	for i := 101; i < 121; i++ {
		if _, known, err := s.Deliveries().Known(ctx, "s", fmt.Sprint(i)); err != nil || !known {
			t.Fatalf("delivery %d is not known any more (%v)", i, err)
		}
	}
}
