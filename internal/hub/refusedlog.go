package hub

import (
	"net/netip"
	"sync"
	"time"

	"hermes-mobile/frame"
)

const (
	maxRefusedLines   = 60
	refusedLinesEvery = time.Minute
)

// refusedLines bounds how many lines of the log are about devices that were refused: each address may be wrong ten times before it is blocked,
// and a guesser with a network of IPv6 has more addresses than a disk has room.
type refusedLines struct {
	mu    sync.Mutex
	began time.Time // of the minute
	lines int
	left  int // out of the log
}

// next reports whether one more may be logged, and how many were left out in the minute before.
func (l *refusedLines) next(now time.Time) (ok bool, before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.began) >= refusedLinesEvery {
		before = l.left
		l.began, l.lines, l.left = now, 0, 0
	}
	if l.lines >= maxRefusedLines {
		l.left++
		return false, before
	}
	l.lines++
	return true, before
}

// logRefused logs that a device was turned away at its hello.
func (h *Hub) logRefused(device string, addr netip.Addr, code frame.Code, why string) {
	ok, before := h.refused.next(time.Now())
	if before > 0 {
		h.log.Warn("more devices were refused than are logged", "left_out", before)
	}
	if ok {
		h.log.Warn("a device was refused", "device", device, "addr", addr, "code", code, "why", why)
	}
}
