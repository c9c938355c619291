package server

import (
	"context"
	"sync"
	"time"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/setup"
	"hermes-mobile/internal/store"
)

const (
	// How old a snapshot may be before a new one is taken: for the status, and for /readyz, which
	// monitors poll.
	snapshotEvery = 10 * time.Second
	readyEvery    = 30 * time.Second
	// snapshotTimeout bounds the time for one snapshot. versionKept is how long the version of
	// Hermes is cached.
	snapshotTimeout = 20 * time.Second
	versionKept     = time.Hour
)

// snapshot is the state of the machine around the server. Taking one needs files, a disk, or
// another process.
type snapshot struct {
	at     time.Time
	hermes *doctor.Hermes
	folder *doctor.Folder
	proxy  *doctor.APIProxy
	aging  []store.Aging
}

// snapshots takes snapshots on demand, on a goroutine of its own, so no request waits for a disk.
type snapshots struct {
	take func(ctx context.Context) *snapshot

	mu      sync.Mutex
	newest  *snapshot
	pending chan struct{} // closed when the requested snapshot is there; nil: none was requested
	ended   bool
	wake    chan struct{}
}

func newSnapshots(take func(context.Context) *snapshot) *snapshots {
	return &snapshots{take: take, wake: make(chan struct{}, 1)}
}

// run takes snapshots until ctx ends.
func (s *snapshots) run(ctx context.Context) {
	defer s.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		bounded, cancel := context.WithTimeout(ctx, snapshotTimeout)
		taken := s.take(bounded)
		cancel()
		s.mu.Lock()
		s.newest = taken
		close(s.pending)
		s.pending = nil
		s.mu.Unlock()
	}
}

// end releases those who wait for a snapshot that won't come.
func (s *snapshots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.pending != nil {
		close(s.pending)
		s.pending = nil
	}
}

// last returns the newest snapshot, or nil before the first one. It requests another one if that is
// old.
func (s *snapshots) last() *snapshot {
	newest, _ := s.request(time.Now().Add(-readyEvery))
	return newest
}

// request returns the newest snapshot. If that was taken before since, it requests another one and
// returns a channel that is closed when the newer one is there.
func (s *snapshots) request(since time.Time) (*snapshot, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.newest != nil && !s.newest.at.Before(since) {
		return s.newest, nil
	}
	if s.pending == nil {
		s.pending = make(chan struct{})
		s.wake <- struct{}{} // never blocks: at most one request is pending
	}
	return s.newest, s.pending
}

// fresh waits for a snapshot of a maximum age. After the timeout it returns the newest there is.
func (s *snapshots) fresh(ctx context.Context, age, timeout time.Duration) *snapshot {
	since := time.Now().Add(-age)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		newest, pending := s.request(since)
		if pending == nil {
			return newest
		}
		select {
		case <-pending:
		case <-timer.C:
			return newest
		case <-ctx.Done():
			return newest
		}
	}
}

// versions caches the version of the Hermes in a home.
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
