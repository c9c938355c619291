package apiproxy

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"hermes-mobile/internal/ratelimit"
	"hermes-mobile/internal/store"
)

// auditEvery is how long failed logins are collected before they become one entry of the audit log.
const auditEvery = 10 * time.Minute

// failures records failed logins in the audit log. All failures of ten minutes are one entry, so a
// flood doesn't fill the log.
type failures struct {
	log   *slog.Logger
	store *store.Store
	now   func() time.Time

	storing  sync.Mutex // held while an entry is written
	mu       sync.Mutex
	failed   int // logins, since since
	since    time.Time
	from     netip.Prefix // the network of them all, zero if there are several
	timer    *time.Timer
	finished bool
}

func newFailures(log *slog.Logger, s *store.Store, now func() time.Time) *failures {
	return &failures{log: log, store: s, now: now}
}

// login counts a failed login or a wrong key.
func (f *failures) login(addr netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.finished {
		return
	}
	network := ratelimit.Network(addr)
	if f.failed == 0 {
		f.since, f.from = f.now(), network
		f.timer = time.AfterFunc(auditEvery, f.flush)
	}
	f.failed++
	if network != f.from {
		f.from = netip.Prefix{}
	}
}

// flush writes the entry for the failures so far. The store must still be open.
func (f *failures) flush() {
	f.storing.Lock()
	defer f.storing.Unlock()
	f.mu.Lock()
	n, since, from := f.failed, f.since, "several networks"
	if f.from.IsValid() {
		from = f.from.String()
	}
	f.failed = 0
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	if n == 0 {
		return
	}
	e := store.AuditEntry{At: f.now(), Actor: "server", Origin: from, Action: "api_login.failed", Detail: fmt.Sprintf("%d failed since %s", n, since.UTC().Format(time.RFC3339))}
	if err := f.store.Do(func(tx *store.Tx) error { return tx.AddAudit(e) }); err != nil {
		f.log.Error("audit entry not stored", "action", e.Action, "err", err)
	}
}

// close writes the last entry and stops counting.
func (f *failures) close() {
	f.mu.Lock()
	f.finished = true
	f.mu.Unlock()
	f.flush()
}
