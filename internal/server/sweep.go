package server

import (
	"context"
	"time"

	"hermes-mobile/internal/store"
)

const (
	sweepFirst  = 10 * time.Minute // after the start: a clock that is far ahead must not drop ids that phones come back with
	sweepEvery  = time.Hour
	idsKept     = 24 * time.Hour
	recordsKept = 30 * 24 * time.Hour // of deliveries
	filesKept   = 25 * time.Hour      // longer than the link to a file and the gateway's time to fetch it
	auditKept   = 100_000             // entries of the audit log
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
		timer.Reset(sweepEvery)
		now := sweepTime(s.started, time.Since(s.started), time.Now())
		if err := s.store.SweepAudit(ctx, now.AddDate(0, 0, -s.cfg.AuditDays), auditKept); err != nil && ctx.Err() == nil {
			s.log.Error("sweep the audit log", "error", err)
		}
		keep := store.Retention{IDs: idsKept, Records: recordsKept, Outbox: time.Duration(s.cfg.OutboxDays) * 24 * time.Hour, Entries: s.cfg.OutboxEntries}
		if err := s.store.Sweep(ctx, keep, now); err != nil && ctx.Err() == nil {
			s.log.Error("old entries could not be dropped", "error", err)
		} else if used, err := s.store.Hashes(ctx); err == nil {
			removed, freed, err := s.files.Sweep(ctx, func(hash string) bool { return used[hash] }, filesKept, now)
			if err != nil && ctx.Err() == nil {
				s.log.Error("old files could not be dropped", "error", err)
			} else if removed > 0 {
				s.log.Info("old files were dropped", "files", removed, "bytes", freed)
			}
		}
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
