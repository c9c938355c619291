// Package ratelimit bounds how often something happens: wrong passwords of an address, requests of
// a user, lines of a log.
//
// It has two kinds of limit. A bucket ([Bucket], [Buckets]) allows a burst and then a steady rate.
// It is the limiter of golang.org/x/time/rate. A window ([Window], [Windows]) allows a number of
// events in any period of a given length, however they are spread. A bucket of 10 that refills 10
// a minute lets up to 19 events through in one minute, so limits that the protocol words as "10 in
// a minute" are windows.
//
// Whatever a limit counts by (an address, a user, a message), all keys are in a [Table], which has
// a maximum size and forgets the least recently used key. Addresses count by [Network].
package ratelimit

import (
	"time"

	"golang.org/x/time/rate"
)

// Limit is how often something may happen: Burst times at once, then once per Every.
type Limit struct {
	Burst int
	Every time.Duration
}

// PerMinute returns the limit with a burst and a number of events per minute.
func PerMinute(burst, events int) Limit {
	return Limit{Burst: burst, Every: time.Minute / time.Duration(events)}
}

// Bucket counts events against one Limit. It isn't safe for concurrent use. A clock that is set
// back neither refills nor stops a bucket.
type Bucket struct {
	limiter *rate.Limiter
	every   time.Duration
	held    int
	seen    time.Time // when it was last asked
}

// NewBucket returns a full bucket.
func NewBucket(l Limit) *Bucket {
	return &Bucket{limiter: rate.NewLimiter(rate.Every(l.Every), l.Burst), every: l.Every}
}

// Wait returns how long it takes until one more event is allowed, 0 if it is allowed now.
func (b *Bucket) Wait(now time.Time) time.Duration {
	if now.Before(b.seen) {
		b.limiter.AllowN(now, 0) // count from here: the limiter itself waits for the clock to catch up
	}
	b.seen = now
	missing := float64(1+b.held) - b.limiter.TokensAt(now)
	return max(0, time.Duration(missing*float64(b.every)))
}

// Take counts an event if it is allowed. Otherwise it returns how long to wait.
func (b *Bucket) Take(now time.Time) (wait time.Duration) {
	if wait = b.Wait(now); wait == 0 {
		b.limiter.AllowN(now, 1)
	}
	return wait
}

// hold reserves an event if it is allowed. Otherwise it returns how long to wait. settle ends the
// reservation.
func (b *Bucket) hold(now time.Time) (wait time.Duration) {
	if wait = b.Wait(now); wait == 0 {
		b.held++
	}
	return wait
}

// settle ends a reservation. used says whether the event counts.
func (b *Bucket) settle(now time.Time, used bool) {
	b.held--
	if used {
		b.limiter.AllowN(now, 1)
	}
}

// full reports whether the bucket is as good as a new one.
func (b *Bucket) full(now time.Time) bool {
	return b.held == 0 && b.limiter.TokensAt(now) >= float64(b.limiter.Burst())
}
