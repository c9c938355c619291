package store

import (
	"context"
	"database/sql"
	"math"
	"time"
)

// AuditEntry records one act of an owner, a pairing code, or a new device. It holds no secret and no message text.
type AuditEntry struct {
	N       int64     // position in the log, set by the store
	At      time.Time // set by AddAudit when zero
	Actor   string    // who: "socket", "admin", "code", "server", "device:ID" or "user:ID"
	Origin  string    // from where: an address, or "uid N" at the other end of the admin socket
	Action  string    // a dotted name such as "device.revoke"
	Subject string    // the device, user, or token label it was done to
	Detail  string    // short, for people
}

// AddAudit appends an entry to the audit log.
func (t *Tx) AddAudit(e AuditEntry) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	return t.must("audit.add", e.At.UnixMilli(), e.Actor, e.Origin, e.Action, e.Subject, e.Detail)
}

// SweepAudit drops entries older than a time, and the oldest beyond a number of entries.
func (t *Tx) SweepAudit(before time.Time, most int) error {
	return t.must("audit.sweep", before.UnixMilli(), most)
}

// Audit returns entries before position before (0: from the newest) that are not older than since, newest first, limit at most.
func (s *Store) Audit(ctx context.Context, before int64, since time.Time, limit int) ([]AuditEntry, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	from := int64(math.MinInt64)
	if !since.IsZero() {
		from = since.UnixMilli()
	}
	var list []AuditEntry
	err := s.rows(ctx, "audit.list", func(r *sql.Rows) error {
		var e AuditEntry
		var at int64
		err := r.Scan(&e.N, &at, &e.Actor, &e.Origin, &e.Action, &e.Subject, &e.Detail)
		e.At = time.UnixMilli(at)
		list = append(list, e)
		return err
	}, before, from, limit)
	return list, err
}
