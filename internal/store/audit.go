package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hermes-mobile/internal/audit"
)

// AuditLog reads and sweeps the audit log.
type AuditLog struct{ s *Store }

// AuditLog returns the audit log.
func (s *Store) AuditLog() AuditLog { return AuditLog{s} }

// AuditEntry records one act of an owner, a pairing code, or a new device. It holds no secret and
// no message text.
type AuditEntry struct {
	N       int64     // position in the log, set by the store
	At      time.Time // set by AddAudit when zero
	Actor   string    // who: "socket", "admin", "code", "server", "device:ID" or "user:ID"
	Origin  string    // from where: an address, or "uid N" at the other end of the admin socket
	Action  string    // a dotted name such as "device.revoked"
	Subject string    // the device, user, or token label it was done to
	Detail  string    // short, for people
}

// Maximum lengths of an entry's fields in bytes. AddAudit cuts longer ones.
const (
	maxAuditField  = 200
	maxAuditDetail = 400
)

// AddAudit appends an entry to the audit log. It cuts long fields and escapes characters that don't
// print, such as line breaks and those that change the direction of text, so an entry can't
// manipulate a terminal or a page.
func (t *Tx) AddAudit(e AuditEntry) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	return t.must("audit.add", e.At.UnixMilli(), printable(e.Actor, maxAuditField), printable(e.Origin, maxAuditField),
		printable(e.Action, maxAuditField), printable(e.Subject, maxAuditField), printable(e.Detail, maxAuditDetail))
}

// Record appends an entry about an act of the actor in the context.
func (t *Tx) Record(ctx context.Context, action, subject, detail string) error {
	by := audit.From(ctx)
	return t.AddAudit(AuditEntry{Actor: by.Actor, Origin: by.Origin, Action: action, Subject: subject, Detail: detail})
}

// printable escapes all characters of s that don't print, and returns at most limit bytes.
func printable(s string, limit int) string {
	const cut = "…"
	var b strings.Builder
	fits := 0 // bytes of b that leave room for cut
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		if b.Len() > limit {
			return b.String()[:fits] + cut
		}
		if b.Len() <= limit-len(cut) {
			fits = b.Len()
		}
	}
	return b.String()
}

// AuditFilter selects entries of the audit log. The zero value selects all.
type AuditFilter struct {
	Before, After int64     // positions, both exclusive; 0: no bound
	Since         time.Time // no older entries
	Action        string    // a dotted name, in which * matches anything
	Device        string    // id of the device that acted or was acted on
}

func (f AuditFilter) args() []any {
	before, since := f.Before, int64(math.MinInt64)
	if before <= 0 {
		before = math.MaxInt64
	}
	if !f.Since.IsZero() {
		since = f.Since.UnixMilli()
	}
	return []any{before, f.After, since, globLiteral.Replace(f.Action), f.Device}
}

// globLiteral escapes a GLOB pattern except for its stars.
var globLiteral = strings.NewReplacer("[", "[[]", "?", "[?]")

// List returns the entries that a filter selects, newest first, at most limit.
func (a AuditLog) List(ctx context.Context, f AuditFilter, limit int) ([]AuditEntry, error) {
	return a.list(ctx, "audit.newest", f, limit)
}

// From returns the entries that a filter selects, oldest first, at most limit.
func (a AuditLog) From(ctx context.Context, f AuditFilter, limit int) ([]AuditEntry, error) {
	return a.list(ctx, "audit.oldest", f, limit)
}

func (a AuditLog) list(ctx context.Context, query string, f AuditFilter, limit int) ([]AuditEntry, error) {
	var list []AuditEntry
	err := a.s.rows(ctx, query, func(r *sql.Rows) error {
		var e AuditEntry
		var at int64
		err := r.Scan(&e.N, &at, &e.Actor, &e.Origin, &e.Action, &e.Subject, &e.Detail)
		e.At = time.UnixMilli(at)
		list = append(list, e)
		return err
	}, append(f.args(), limit)...)
	return list, err
}

// Start returns the position before the oldest of the newest limit entries that a filter selects.
// From returns them with that position as After.
func (a AuditLog) Start(ctx context.Context, f AuditFilter, limit int) (n int64, err error) {
	err = a.s.rows(ctx, "audit.start", func(r *sql.Rows) error { return r.Scan(&n) }, append(f.args(), limit)...)
	return n, err
}

// metaAuditSweep exists while a sweep removes entries. At any other time a trigger rejects every
// deletion.
const metaAuditSweep = "audit_sweep"

// Sweep removes entries from before a time. If more than most entries are left, it removes the
// oldest of the most frequent actions, so repeating one act doesn't push out the entries of others.
func (a AuditLog) Sweep(ctx context.Context, before time.Time, most int) error {
	drop := func(find string, args ...any) error {
		return a.s.sweep(ctx, find, sweepPiece, func(t *Tx, key []any) error {
			return t.dropAudit(key[0].(int64))
		}, args...)
	}
	if err := drop("audit.old", before.UnixMilli()); err != nil {
		return err
	}
	counts := map[string]int{}
	err := a.s.rows(ctx, "audit.counts", func(r *sql.Rows) error {
		var action string
		var n int
		err := r.Scan(&action, &n)
		counts[action] = n
		return err
	})
	if err != nil {
		return err
	}
	share := fairShare(counts, most)
	for action, n := range counts {
		if n > share {
			if err := drop("audit.excess", action, share); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tx) dropAudit(n int64) error {
	if err := t.must("meta.set", metaAuditSweep, []byte{1}); err != nil {
		return err
	}
	if err := t.must("audit.drop", n); err != nil {
		return err
	}
	return t.must("meta.drop", metaAuditSweep)
}

// fairShare returns how many entries each action may keep, so that at most most are left.
func fairShare(counts map[string]int, most int) int {
	var sizes []int
	for _, n := range counts {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	for i, n := range sizes {
		if rest := len(sizes) - i; n*rest > most {
			return most / rest
		}
		most -= n
	}
	return math.MaxInt
}
