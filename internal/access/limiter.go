package access

import (
	"sync"
	"time"
)

// Limits of replacing a device's connection (protocol §2).
const (
	replaceLimit  = 5
	replaceWindow = time.Minute
	maxLimited    = 50_000
)

// Limiter lets an id through 5 times within a minute: for a device whose live
// connection is replaced again and again, as when two apps share one id. What
// it refuses does not count, so that an id gets through again at last.
//
// At most 50,000 ids are remembered, the newest. Safe for concurrent use.
type Limiter struct {
	now   func() time.Time
	mu    sync.Mutex
	known *ledger[string, []time.Time]
}

// NewLimiter makes a limiter. The clock is time.Now, or a test's.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, known: newLedger[string, []time.Time](maxLimited)}
}

// Allow counts an event of an id and says whether it may be, else when the next
// one may.
func (l *Limiter) Allow(id string) (retryAfter time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	after := now.Add(-replaceWindow)
	l.known.sweep(func(times *[]time.Time) bool { return len(within(*times, after)) == 0 })
	if times := l.known.get(id); times != nil {
		if *times = within(*times, after); len(*times) >= replaceLimit {
			return (*times)[0].Add(replaceWindow).Sub(now), false
		}
	}
	times := l.known.touch(id, never)
	*times = append(*times, now)
	return 0, true
}
