package store

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// entries are the subjects of audit entries, in one word.
func entries(list []AuditEntry) (text string) {
	for _, e := range list {
		text += e.Subject
	}
	return text
}

// fill appends entries with the subjects a, b, c and so on, an hour apart.
func fill(t *testing.T, s *Store, actions ...string) {
	t.Helper()
	for i, action := range actions {
		do(t, s, func(tx *Tx) error {
			return tx.AddAudit(AuditEntry{At: t0.Add(time.Duration(i) * time.Hour), Actor: "socket", Origin: "uid 1000", Action: action, Subject: string(rune('a' + i))})
		})
	}
}

func TestAuditSelects(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s, "device.revoked", "device.renamed", "token.added", "device.revoked", "pair.code")
	do(t, s, func(tx *Tx) error {
		return tx.AddAudit(AuditEntry{At: t0.Add(5 * time.Hour), Actor: "device:a", Action: "device.rotated", Subject: "f"})
	})
	for _, c := range []struct {
		filter         AuditFilter
		limit          int
		newest, oldest string
	}{
		{AuditFilter{}, 10, "fedcba", "abcdef"},
		{AuditFilter{}, 2, "fe", "ab"},
		{AuditFilter{Before: 3}, 10, "ba", "ab"},
		{AuditFilter{After: 3}, 2, "fe", "de"},
		{AuditFilter{Since: t0.Add(3 * time.Hour)}, 10, "fed", "def"},
		{AuditFilter{Action: "device.revoked"}, 10, "da", "ad"},
		{AuditFilter{Action: "device.*"}, 10, "fdba", "abdf"},
		{AuditFilter{Action: "[a-z]*"}, 10, "", ""},
		{AuditFilter{Action: "????.????"}, 10, "", ""},
		{AuditFilter{Device: "a"}, 10, "fa", "af"},
		{AuditFilter{Device: "a", Action: "*.rotated"}, 10, "f", "f"},
	} {
		if got := entries(value[[]AuditEntry](t)(s.AuditLog().List(ctx, c.filter, c.limit))); got != c.newest {
			t.Errorf("%+v, %d: the newest are %q, want %q", c.filter, c.limit, got, c.newest)
		}
		if got := entries(value[[]AuditEntry](t)(s.AuditLog().From(ctx, c.filter, c.limit))); got != c.oldest {
			t.Errorf("%+v, %d: the oldest are %q, want %q", c.filter, c.limit, got, c.oldest)
		}
		from := c.filter
		from.After = value[int64](t)(s.AuditLog().Start(ctx, c.filter, c.limit))
		want := []byte(c.newest)
		slices.Reverse(want)
		if got := entries(value[[]AuditEntry](t)(s.AuditLog().From(ctx, from, c.limit))); got != string(want) {
			t.Errorf("%+v, %d: from the start of the newest %q, want %q", c.filter, c.limit, got, want)
		}
	}
}

func TestAuditEntriesAreBoundedAndPrint(t *testing.T) {
	s := open(t, t.TempDir())
	for in, want := range map[string]string{
		"Anna’s phone 📱":      "Anna’s phone 📱",
		"a\nb\x1b[31m\u202ec": `a\nb\x1b[31m\u202ec`,
		"a\xffb\u00a0c\u200b": `a` + "\ufffd" + `b\u00a0c\u200b`,
		"\U000e0041":          `\U000e0041`,
		"it's":                "it's",
		"":                    "",
	} {
		do(t, s, func(tx *Tx) error {
			return tx.AddAudit(AuditEntry{Actor: in, Origin: in, Action: in, Subject: in, Detail: in})
		})
		e := value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 1))[0]
		for _, got := range []string{e.Actor, e.Origin, e.Action, e.Subject, e.Detail} {
			if got != want {
				t.Errorf("%q is stored as %q, want %q", in, got, want)
			}
		}
		if time.Since(e.At).Abs() > time.Hour {
			t.Errorf("an entry without a time is from %v", e.At)
		}
	}
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("é", 1<<20), strings.Repeat("\u202e", 1<<20), strings.Repeat("\xff", 1<<20)} {
		do(t, s, func(tx *Tx) error {
			return tx.AddAudit(AuditEntry{Actor: long, Origin: long, Action: long, Subject: long, Detail: long})
		})
		e := value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 1))[0]
		for _, got := range []string{e.Actor, e.Origin, e.Action, e.Subject} {
			if len(got) > maxAuditField || len(got) < maxAuditField-10 || !strings.HasSuffix(got, "…") {
				t.Errorf("a field of %d bytes, %q", len(got), got)
			}
		}
		if len(e.Detail) > maxAuditDetail || len(e.Detail) < maxAuditDetail-10 {
			t.Errorf("a detail of %d bytes", len(e.Detail))
		}
	}
	for n := maxAuditField - 5; n < maxAuditField+5; n++ {
		if got := printable(strings.Repeat("x", n), maxAuditField); (n <= maxAuditField) != (len(got) == n && !strings.HasSuffix(got, "…")) {
			t.Errorf("%d bytes become %q", n, got)
		}
	}
}

// Neither this program nor another can change an entry by mistake, and only the sweep drops any.
func TestAuditIsAppendOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s, "device.revoked", "device.revoked")
	db := raw(t, dir)
	for _, statement := range []string{
		"DELETE FROM audit", "DELETE FROM audit WHERE n=1", "UPDATE audit SET subject='other'", "UPDATE audit SET at=0 WHERE n=1",
		"INSERT OR REPLACE INTO audit(n, at, actor, origin, action, subject, detail) VALUES(1, 0, '', '', '', '', '')",
		"INSERT INTO audit(n, at, actor, origin, action, subject, detail) VALUES(1, 0, '', '', '', '', '') ON CONFLICT(n) DO UPDATE SET subject='other'",
	} {
		if _, err := db.ExecContext(ctx, statement); err == nil {
			t.Errorf("%s was done", statement)
		}
	}
	if err := s.Do(func(tx *Tx) error { return tx.must("audit.drop", 1) }); err == nil || !strings.Contains(err.Error(), "only a sweep") {
		t.Errorf("an entry was dropped outside of a sweep: %v", err)
	}
	if got := entries(value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 10))); got != "ba" {
		t.Errorf("%q is left, want both", got)
	}
	ok(t, s.AuditLog().Sweep(ctx, t0.Add(time.Minute), 10))
	if got := entries(value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 10))); got != "b" {
		t.Errorf("%q is left after the sweep, want b", got)
	}
	if err := s.Do(func(tx *Tx) error { return tx.must("audit.drop", 2) }); err == nil {
		t.Error("a sweep leaves the log open to deletions")
	}
}

// A flood of one act drops older entries of that act, and nobody else's.
func TestAuditSweepKeepsRareActions(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s, "device.revoked", "token.added", "device.revoked")
	const flood = 3*sweepPiece + 7
	do(t, s, func(tx *Tx) error {
		for i := range flood {
			if err := tx.AddAudit(AuditEntry{At: t0.Add(100 * time.Hour), Actor: "socket", Action: "delivery.sent", Subject: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	ok(t, s.AuditLog().Sweep(ctx, t0, 100))
	all := value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 1000))
	if len(all) != 100 || entries(all[97:]) != "cba" || all[0].Subject != fmt.Sprint(flood-1) || all[96].Subject != fmt.Sprint(flood-97) {
		t.Errorf("%d entries are left, the newest %q, the oldest %q", len(all), all[0].Subject, entries(all[len(all)-3:]))
	}
	ok(t, s.AuditLog().Sweep(ctx, t0.Add(101*time.Hour), 100))
	if all := value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 10)); len(all) != 0 {
		t.Errorf("%d entries outlive their time", len(all))
	}
}

func TestFairShare(t *testing.T) {
	for _, c := range []struct {
		counts []int
		most   int
		want   int // entries that are left
	}{
		{nil, 10, 0}, {[]int{5}, 10, 5}, {[]int{5, 5}, 10, 10}, {[]int{11}, 10, 10}, {[]int{1, 2, 100}, 10, 10}, {[]int{100, 100, 100}, 10, 9},
		{[]int{1, 1, 1}, 0, 0}, {[]int{3, 3, 3, 3}, 2, 0},
	} {
		counts := map[string]int{}
		for i, n := range c.counts {
			counts[fmt.Sprint(i)] = n
		}
		share, left := fairShare(counts, c.most), 0
		for n := range maps.Values(counts) {
			left += min(n, share)
		}
		if left != c.want {
			t.Errorf("%v within %d: %d are left, want %d", c.counts, c.most, left, c.want)
		}
	}
}

// Entries keep their order and none is lost while others are swept and read.
func TestAuditConcurrently(t *testing.T) {
	s := open(t, t.TempDir())
	const writers, each = 8, 50
	var work, sweeping sync.WaitGroup
	swept, stop := context.WithCancel(ctx)
	sweeping.Go(func() {
		for swept.Err() == nil {
			if err := s.AuditLog().Sweep(ctx, t0, 1_000_000); err != nil {
				t.Error(err)
			}
			if _, err := s.AuditLog().List(ctx, AuditFilter{Action: "device.*"}, 10); err != nil {
				t.Error(err)
			}
		}
	})
	for w := range writers {
		work.Go(func() {
			for i := range each {
				if err := s.Do(func(tx *Tx) error {
					return tx.AddAudit(AuditEntry{Actor: fmt.Sprint(w), Action: "device.renamed", Subject: fmt.Sprint(i)})
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	stop()
	sweeping.Wait()
	next := map[string]int{}
	for _, e := range value[[]AuditEntry](t)(s.AuditLog().From(ctx, AuditFilter{}, writers*each+1)) {
		if e.Subject != fmt.Sprint(next[e.Actor]) {
			t.Fatalf("entry %s of writer %s comes out of order", e.Subject, e.Actor)
		}
		next[e.Actor]++
	}
	for w := range writers {
		if next[fmt.Sprint(w)] != each {
			t.Errorf("writer %d has %d entries, want %d", w, next[fmt.Sprint(w)], each)
		}
	}
}

// A server that starts on a backup notes that its log lacks what happened since.
func TestAuditTellsOfARestore(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s, "device.revoked")
	copied := t.TempDir()
	ok(t, s.Backup(ctx, filepath.Join(copied, File)))
	restored := open(t, copied)
	list := value[[]AuditEntry](t)(restored.AuditLog().List(ctx, AuditFilter{}, 10))
	if len(list) != 2 || list[0].Action != "backup.restored" || list[0].Actor != "server" || time.Since(list[0].At).Abs() > time.Hour || list[1].Subject != "a" {
		t.Errorf("%+v", list)
	}
	if list := value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 10)); len(list) != 1 {
		t.Errorf("the original has %+v", list)
	}
}
