package server

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// refusalLog logs requests that are turned away before they become a connection. In a minute each address is logged once for
// each reason, and at most maxRefusals lines are written, so that a flood does not fill the disk; how many were left out
// is logged with the first of a later minute.
type refusalLog struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	began time.Time // of the minute
	seen  map[refusal]bool
	left  int // out of the log
}

// refusal is what counts as the same again.
type refusal struct {
	addr   netip.Addr
	status int
}

const (
	maxRefusals   = 30
	maxWhy        = 300 // bytes; a reason may quote what was sent
	refusalsEvery = time.Minute
)

func newRefusalLog(log *slog.Logger, now func() time.Time) *refusalLog {
	return &refusalLog{log: log, now: now, seen: map[refusal]bool{}}
}

func (l *refusalLog) note(addr netip.Addr, status int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.began) >= refusalsEvery {
		if l.left > 0 {
			l.log.Info("more connections were turned away than are logged", "left_out", l.left, "since", l.began.UTC().Truncate(time.Second))
		}
		l.began, l.left = now, 0
		clear(l.seen)
	}
	r := refusal{addr, status}
	if l.seen[r] || len(l.seen) >= maxRefusals {
		l.left++
		return
	}
	l.seen[r] = true
	why = why[:min(len(why), maxWhy)]
	l.log.Info("a connection was turned away", "addr", addr, "status", status, "why", why)
}
