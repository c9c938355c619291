package store

import (
	"slices"
	"testing"
	"time"
)

// stateOf lists how far each delivery has come, oldest first.
func stateOf(t *testing.T, s *Store) (list []string) {
	t.Helper()
	ok(t, s.Deliveries().List(ctx, "", func(d Delivery) bool {
		state := "queued"
		for i, at := range []time.Time{d.SentAt, d.AckedAt, d.SeenAt, d.ExpiredAt} {
			if !at.IsZero() {
				state = []string{"sent", "acked", "seen", "expired"}[i]
			}
		}
		list = append(list, state)
		return true
	}))
	slices.Reverse(list)
	return list
}

// A record goes one way: a later word about an earlier state changes nothing.
func TestDeliveryRecords(t *testing.T) {
	s := open(t, t.TempDir())
	dev, other := device(t, s, "d"), device(t, s, "other")
	for seq := int64(1); seq <= 5; seq++ {
		do(t, s, func(tx *Tx) error {
			_, err := tx.Deliveries().Add(Delivery{Source: "cron", Job: "j"}, dev, seq*10, t0)
			return err
		})
	}
	do(t, s, func(tx *Tx) error { _, err := tx.Deliveries().Add(Delivery{Source: "cron"}, other, 10, t0); return err })
	steps := []struct {
		what  string
		op    func(*Tx) error
		want  []string
		trail Watermark
	}{
		{"nothing", func(*Tx) error { return nil }, []string{"queued", "queued", "queued", "queued", "queued", "queued"}, Watermark{50, 9, 9, 9}},
		{"sent after the first", func(tx *Tx) error { return tx.Deliveries().Sent(dev, 10, 20, t0) }, []string{"queued", "sent", "queued", "queued", "queued", "queued"}, Watermark{50, 9, 9, 9}},
		{"sent", func(tx *Tx) error { return tx.Deliveries().Sent(dev, 0, 39, t0) }, []string{"sent", "sent", "sent", "queued", "queued", "queued"}, Watermark{50, 39, 9, 9}},
		{"acked", func(tx *Tx) error { return tx.Deliveries().Acked(dev, 0, 20, t0) }, []string{"acked", "acked", "sent", "queued", "queued", "queued"}, Watermark{50, 39, 29, 9}},
		{"seen", func(tx *Tx) error { return tx.Deliveries().Seen(dev, 0, 10, t0) }, []string{"seen", "acked", "sent", "queued", "queued", "queued"}, Watermark{50, 39, 29, 19}},
		{"acked late", func(tx *Tx) error { return tx.Deliveries().Acked(dev, 0, 10, t0) }, []string{"seen", "acked", "sent", "queued", "queued", "queued"}, Watermark{50, 39, 29, 19}},
		{"expired", func(tx *Tx) error { return tx.Expire(dev, 40, t0) }, []string{"seen", "acked", "sent", "expired", "queued", "queued"}, Watermark{50, 49, 29, 19}},
		{"seen at once", func(tx *Tx) error { return tx.Deliveries().Seen(dev, 10, 50, t0) }, []string{"seen", "seen", "seen", "expired", "seen", "queued"}, Watermark{}},
	}
	for _, step := range steps {
		do(t, s, step.op)
		if got := stateOf(t, s); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
		if got := value[Watermark](t)(s.Deliveries().Watermark(ctx, dev)); got != step.trail {
			t.Errorf("%s: trail %+v, want %+v", step.what, got, step.trail)
		}
	}
	var devices []string
	ok(t, s.Deliveries().List(ctx, "other", func(d Delivery) bool { devices = append(devices, d.Device); return true }))
	if !slices.Equal(devices, []string{"other"}) {
		t.Errorf("deliveries of the other device: %v", devices)
	}
}

// An id may be used again after a day, while the record of its first use is kept.
func TestDeliveryIDAfterADay(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	deliver := func() (dup bool) {
		do(t, s, func(tx *Tx) (err error) {
			dup, err = tx.Deliveries().Add(Delivery{Source: "deliver", Sender: "s", ID: "1"}, dev, 1, t0)
			return err
		})
		return dup
	}
	keep := Retention{IDs: time.Hour, Records: 48 * time.Hour, Outbox: time.Hour, Entries: 10}
	if deliver() || !deliver() {
		t.Error("the same id was taken for new, or a new one for known")
	}
	ok(t, s.Sweep(ctx, keep, t0.Add(30*time.Hour)))
	if deliver() {
		t.Error("an id of the day before is still known")
	}
	if n := len(stateOf(t, s)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	ok(t, s.Sweep(ctx, keep, t0.Add(49*time.Hour)))
	if n := len(stateOf(t, s)); n != 0 {
		t.Errorf("%d records are left", n)
	}
}
