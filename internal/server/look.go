package server

import (
	"context"
	"sync"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/setup"
	"hermes-mobile/internal/store"
)

const (
	// How old a look may be before another one is taken: for the status, and for /readyz, which is asked over and over.
	lookEvery  = 10 * time.Second
	readyEvery = 30 * time.Second
	// lookTimeout bounds one look; versionKept is how long the version of Hermes is believed.
	lookTimeout = 20 * time.Second
	versionKept = time.Hour
	// fewAging is how many devices are named whose messages will be dropped.
	fewAging = 20
)

// look is what was seen of the machine around the server, which takes files, a disk, or a process to ask.
type look struct {
	at     time.Time
	hermes *doctor.Hermes
	folder *doctor.Folder
	front  *doctor.APIProxy
	aging  []store.Aging
}

// looks takes looks when they are asked for, on a goroutine of its own, so that no request waits for a disk.
type looks struct {
	take func(ctx context.Context) *look

	mu      sync.Mutex
	newest  *look
	pending chan struct{} // closed when the look that is asked for is there; nil: none is
	ended   bool
	wake    chan struct{}
}

func newLooks(take func(context.Context) *look) *looks {
	return &looks{take: take, wake: make(chan struct{}, 1)}
}

// run takes the looks until ctx ends.
func (l *looks) run(ctx context.Context) {
	defer l.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		seen := l.take(bounded)
		cancel()
		l.mu.Lock()
		l.newest = seen
		close(l.pending)
		l.pending = nil
		l.mu.Unlock()
	}
}

// end lets those go who wait for a look that does not come any more.
func (l *looks) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.pending != nil {
		close(l.pending)
		l.pending = nil
	}
}

// last returns the newest look, nil if there is none yet, and asks for another one where it is old.
func (l *looks) last() *look {
	newest, _ := l.ask(time.Now().Add(-readyEvery))
	return newest
}

// ask returns the newest look, and where that is from before a time a channel that is closed when there is a newer one.
func (l *looks) ask(since time.Time) (*look, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.newest != nil && !l.newest.at.Before(since) {
		return l.newest, nil
	}
	if l.pending == nil {
		l.pending = make(chan struct{})
		l.wake <- struct{}{} // has room: one look is asked for at a time
	}
	return l.newest, l.pending
}

// fresh waits for a look that is at most so old, but not longer than its patience; then it returns the newest there is.
func (l *looks) fresh(ctx context.Context, age, patience time.Duration) *look {
	since := time.Now().Add(-age)
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		newest, pending := l.ask(since)
		if pending == nil {
			return newest
		}
		select {
		case <-pending:
		case <-timeout.C:
			return newest
		case <-ctx.Done():
			return newest
		}
	}
}

// look looks around.
func (s *Server) look(ctx context.Context) *look {
	l := &look{at: time.Now(), folder: doctor.ProbeFolder(s.cfg.Data), front: s.lookFront(ctx)}
	if s.cfg.Agent != "demo" {
		l.hermes = doctor.ProbeHermes(ctx, s.cfg, s.hermes.of)
	}
	aging, err := s.store.Aging(ctx, agingBefore(s.cfg, l.at), fewAging)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("what waits for devices cannot be counted", "error", err)
	}
	l.aging = aging
	return l
}

// agingBefore is from when on a waiting message has less than a day left, or less than half of its time.
func agingBefore(cfg *config.Config, now time.Time) time.Time {
	kept := time.Duration(cfg.OutboxDays) * 24 * time.Hour
	return now.Add(-max(kept-24*time.Hour, kept/2))
}

// versions remembers the version of the Hermes of a home.
type versions struct {
	mu   sync.Mutex
	home string
	at   time.Time
	is   setup.Version
}

func (v *versions) of(ctx context.Context, home string) setup.Version {
	if found, _ := setup.LookVersion(home); found.Known() {
		return found
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.home != home || time.Since(v.at) > versionKept {
		v.home, v.at, v.is = home, time.Now(), doctor.AskVersion(ctx, home)
	}
	return v.is
}
