package ratelimit

import (
	"sync"
	"time"
)

// Window counts the events of the last period, exactly. The zero Window is empty. It isn't safe for
// concurrent use.
type Window struct {
	times []time.Time // sorted
}

// Add counts an event and returns how many there were in the last period, this one included.
func (w *Window) Add(now time.Time, period time.Duration) int {
	w.Count(now, period)
	w.times = append(w.times, now)
	return len(w.times)
}

// Count returns how many events there were in the last period. It forgets older ones, and those of
// the future, which a clock that was set back leaves behind.
func (w *Window) Count(now time.Time, period time.Duration) int {
	after := now.Add(-period)
	for len(w.times) > 0 && !w.times[0].After(after) {
		w.times = w.times[1:]
	}
	for n := len(w.times); n > 0 && w.times[n-1].After(now); n-- {
		w.times = w.times[:n-1]
	}
	return len(w.times)
}

// Reset forgets all events.
func (w *Window) Reset() { w.times = nil }

// Windows allows each key a number of events in any period. Events that it rejects don't count, so
// a key that keeps trying is allowed again in the end. It is safe for concurrent use.
type Windows[K comparable] struct {
	events int
	period time.Duration
	now    func() time.Time

	mu    sync.Mutex
	known *Table[K, Window]
}

// NewWindows returns windows for at most keys keys. The clock is time.Now, or a test's.
func NewWindows[K comparable](events int, period time.Duration, keys int, now func() time.Time) *Windows[K] {
	return &Windows[K]{events: events, period: period, now: now, known: NewTable[K, Window](keys)}
}

// Allow counts an event of a key if it is allowed. Otherwise it returns how long to wait.
func (w *Windows[K]) Allow(key K) (wait time.Duration, ok bool) { return w.AllowAt(w.now(), key) }

// AllowAt is Allow at a given time.
func (w *Windows[K]) AllowAt(now time.Time, key K) (wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known.Sweep(func(k *Window) bool { return k.Count(now, w.period) == 0 })
	if k := w.known.Get(key); k != nil && k.Count(now, w.period) >= w.events {
		return k.times[0].Add(w.period).Sub(now), false
	}
	w.known.Touch(key, nil).Add(now, w.period)
	return 0, true
}

// Len returns how many keys are remembered.
func (w *Windows[K]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known.Len()
}
