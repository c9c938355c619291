package server

import (
	"context"
	"log/slog"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/store"
)

const (
	sweepFirst  = 10 * time.Minute // after the start: a clock that is far ahead must not expire ids that phones come back with
	sweepEvery  = time.Hour
	sweepSooner = 10 * time.Minute // while little room for files is left
	idsKept     = 24 * time.Hour
	recordsKept = 30 * 24 * time.Hour // of deliveries
	recordsMost = 200_000             // of those, in addition to the ones whose ids are kept
	filesKept   = 25 * time.Hour      // longer than the lifetime of a link, and than the gateway's time to fetch a file
	auditKept   = 100_000             // entries of the audit log
	unapproved  = 7 * 24 * time.Hour  // that a device may wait for the approval of its user
	// filesKeptCrowded is how long unreferenced files stay while little room is left: longer than
	// the lifetime of a device's link, and than a gateway takes to name a file that it has
	// uploaded.
	filesKeptCrowded = 2 * time.Hour
)

// maintenance removes expired rows and files.
type maintenance struct {
	cfg     *config.Config
	log     *slog.Logger
	started time.Time
	store   *store.Store
	files   *media.Store
	storage *storage
	hub     *hub.Hub
}

// run sweeps a while after the start and then every hour, until ctx ends.
func (m *maintenance) run(ctx context.Context) {
	timer := time.NewTimer(sweepFirst)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		m.sweep(ctx, sweepTime(m.started, time.Since(m.started), time.Now()))
		next := sweepEvery
		if m.storage.crowded() {
			next = sweepSooner
		}
		timer.Reset(next)
	}
}

// sweep removes what has expired and measures what is left.
func (m *maintenance) sweep(ctx context.Context, now time.Time) {
	failed := func(msg string, err error) bool {
		if err != nil && ctx.Err() == nil {
			m.log.Error(msg, "err", err)
		}
		return err != nil
	}
	failed("audit log not swept", m.store.SweepAudit(ctx, now.AddDate(0, 0, -m.cfg.AuditDays), auditKept))
	failed("unapproved devices not removed", m.hub.Owner().DropUnapproved(ctx, now.Add(-unapproved)))
	keep := store.Retention{IDs: idsKept, Records: recordsKept, Deliveries: recordsMost, Outbox: time.Duration(m.cfg.OutboxDays) * 24 * time.Hour, Entries: m.cfg.OutboxEntries}
	m.hub.Swept()
	err := m.store.Sweep(ctx, keep, now)
	m.hub.Swept()
	if failed("expired rows not removed", err) {
		return
	}
	used, err := m.store.Hashes(ctx)
	if failed("referenced files not listed", err) {
		return
	}
	older := filesKept
	if m.storage.crowded() {
		older = filesKeptCrowded
	}
	removed, freed, err := m.files.Sweep(ctx, func(hash string) bool { return used[hash] }, older, now)
	if !failed("expired files not removed", err) && removed > 0 {
		m.log.Info("expired files removed", "files", removed, "bytes", freed)
	}
	failed("files not counted", m.files.Recount(ctx))
	freed, err = m.store.Compact(ctx)
	if !failed("database not compacted", err) && freed > 0 {
		m.log.Info("database compacted", "bytes", freed)
	}
}

// sweepTime returns the time by which things are old. If the clock was set forward since the start,
// everything before that would look older than it is: a machine without a battery-backed clock
// starts in the past and learns the time from the network.
func sweepTime(started time.Time, elapsed time.Duration, now time.Time) time.Time {
	if steady := started.Round(0).Add(elapsed); steady.Before(now.Round(0)) {
		return steady
	}
	return now
}
