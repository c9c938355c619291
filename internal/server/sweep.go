package server

import (
	"context"
	"time"

	"hermes-mobile/internal/store"
)

const (
	sweepFirst  = 10 * time.Minute // after the start: a clock that is far ahead must not drop ids that phones come back with
	sweepEvery  = time.Hour
	sweepSooner = 10 * time.Minute // while little room for files is left
	idsKept     = 24 * time.Hour
	recordsKept = 30 * 24 * time.Hour // of deliveries
	recordsMost = 200_000             // of those, beside the ones whose ids are kept
	filesKept   = 25 * time.Hour      // longer than the link to a file and the gateway's time to fetch it
	auditKept   = 100_000             // entries of the audit log
	unapproved  = 7 * 24 * time.Hour  // that a device may wait for its user to be approved
	// filesKeptCrowded is how long files stay that nothing refers to while little room is left: longer than a link of a device lives,
	// and than a gateway takes to name a file that it has uploaded.
	filesKeptCrowded = 2 * time.Hour
)

// sweep drops what is past its time, a while after the start and every hour.
func (s *Server) sweep(ctx context.Context) {
	timer := time.NewTimer(sweepFirst)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		s.sweepOnce(ctx, sweepTime(s.started, time.Since(s.started), time.Now()))
		next := sweepEvery
		if s.crowded() {
			next = sweepSooner
		}
		timer.Reset(next)
	}
}

// sweepOnce drops what is past its time, and counts anew what is left.
func (s *Server) sweepOnce(ctx context.Context, now time.Time) {
	failed := func(msg string, err error) bool {
		if err != nil && ctx.Err() == nil {
			s.log.Error(msg, "error", err)
		}
		return err != nil
	}
	failed("the audit log could not be swept", s.store.SweepAudit(ctx, now.AddDate(0, 0, -s.cfg.AuditDays), auditKept))
	failed("unapproved devices could not be removed", s.hub.Owner().DropUnapproved(ctx, now.Add(-unapproved)))
	keep := store.Retention{IDs: idsKept, Records: recordsKept, Deliveries: recordsMost, Outbox: time.Duration(s.cfg.OutboxDays) * 24 * time.Hour, Entries: s.cfg.OutboxEntries}
	s.hub.Swept()
	err := s.store.Sweep(ctx, keep, now)
	s.hub.Swept()
	if failed("old entries could not be dropped", err) {
		return
	}
	used, err := s.store.Hashes(ctx)
	if failed("the files in use could not be listed", err) {
		return
	}
	older := filesKept
	if s.crowded() {
		older = filesKeptCrowded
	}
	removed, freed, err := s.files.Sweep(ctx, func(hash string) bool { return used[hash] }, older, now)
	if !failed("old files could not be dropped", err) && removed > 0 {
		s.log.Info("old files were dropped", "files", removed, "bytes", freed)
	}
	failed("the files could not be counted", s.files.Recount(ctx))
	freed, err = s.store.Compact(ctx)
	if !failed("the database could not be compacted", err) && freed > 0 {
		s.log.Info("compacted the database", "bytes", freed)
	}
}

// sweepTime is the time by which things are old. Where the clock was set forward since the start, what came before that would
// look older than it is: a machine without a clock of its own starts in the past and learns the time from the network.
func sweepTime(started time.Time, elapsed time.Duration, now time.Time) time.Time {
	if steady := started.Round(0).Add(elapsed); steady.Before(now.Round(0)) {
		return steady
	}
	return now
}
