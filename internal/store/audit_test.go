package store

import (
	"testing"
	"time"
)

func TestAuditListsNewestFirstAndIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	for i := range 5 {
		do(t, s, func(tx *Tx) error {
			return tx.AddAudit(AuditEntry{At: t0.Add(time.Duration(i) * time.Hour), Actor: "socket", Origin: "uid 1000", Action: "device.revoke", Subject: string(rune('a' + i))})
		})
	}
	subjects := func(before int64, since time.Time, limit int) (text string) {
		for _, e := range value[[]AuditEntry](t)(s.Audit(ctx, before, since, limit)) {
			text += e.Subject
		}
		return text
	}
	for _, c := range []struct {
		before int64
		since  time.Time
		limit  int
		want   string
	}{{0, time.Time{}, 10, "edcba"}, {0, time.Time{}, 2, "ed"}, {3, time.Time{}, 10, "ba"}, {0, t0.Add(3 * time.Hour), 10, "ed"}} {
		if got := subjects(c.before, c.since, c.limit); got != c.want {
			t.Errorf("before %d since %v limit %d: %q, want %q", c.before, c.since, c.limit, got, c.want)
		}
	}
	do(t, s, func(tx *Tx) error { return tx.SweepAudit(t0.Add(time.Hour), 3) })
	if got := subjects(0, time.Time{}, 10); got != "edc" {
		t.Errorf("%q is left, want the newest three", got)
	}
}
