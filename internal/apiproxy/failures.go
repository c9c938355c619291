package apiproxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"hermes-mobile/internal/store"
)

const (
	// maxLines is how many lines strangers and users can have written to the log in a minute.
	maxLines   = 20
	linesEvery = time.Minute
	// auditEvery is how long failed logins are counted before the audit log gets them as one entry.
	auditEvery = 10 * time.Minute
)

// failures tells the owner of what clients do wrong, and so often only that no flood fills a disk: some lines a minute in the log,
// and one entry in the audit log for all failed logins of ten minutes.
type failures struct {
	log   *slog.Logger
	store *store.Store
	now   func() time.Time

	storing  sync.Mutex // while an entry is written
	mu       sync.Mutex
	began    time.Time // of the minute
	lines    int       // that were written in it
	left     int       // out of the log
	failed   int       // logins, since since
	since    time.Time
	from     string // the network of them all, empty where there are several
	timer    *time.Timer
	finished bool
}

func newFailures(log *slog.Logger, s *store.Store, now func() time.Time) *failures {
	return &failures{log: log, store: s, now: now}
}

// say writes a line to the log, unless there were many.
func (f *failures) say(level slog.Level, text string, attributes ...any) {
	f.mu.Lock()
	now := f.now()
	if now.Sub(f.began) >= linesEvery {
		f.began, f.lines = now, 0
	}
	f.lines++
	if f.lines > maxLines {
		f.left++
		f.mu.Unlock()
		return
	}
	if f.left > 0 {
		attributes = append(attributes, "lines_left_out", f.left)
		f.left = 0
	}
	f.mu.Unlock()
	f.log.Log(context.Background(), level, text, attributes...)
}

// login notes a failed login or key.
func (f *failures) login(addr netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.finished {
		return
	}
	near, _ := network(addr)
	if f.failed == 0 {
		f.since, f.from = f.now(), near
		f.timer = time.AfterFunc(auditEvery, f.flush)
	}
	f.failed++
	if near != f.from {
		f.from = ""
	}
}

// flush writes the entry of the failed logins so far. The store must still be open.
func (f *failures) flush() {
	f.storing.Lock()
	defer f.storing.Unlock()
	f.mu.Lock()
	n, since, from := f.failed, f.since, f.from
	f.failed = 0
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	if n == 0 {
		return
	}
	if from == "" {
		from = "several networks"
	}
	e := store.AuditEntry{At: f.now(), Actor: "server", Origin: from, Action: "api_login.failed", Detail: fmt.Sprintf("%d failed since %s", n, since.UTC().Format(time.RFC3339))}
	if err := f.store.Do(func(tx *store.Tx) error { return tx.AddAudit(e) }); err != nil {
		f.log.Error("audit entry not stored", "action", e.Action, "err", err)
	}
}

// close writes what is left, and ends the counting.
func (f *failures) close() {
	f.mu.Lock()
	f.finished = true
	f.mu.Unlock()
	f.flush()
}
