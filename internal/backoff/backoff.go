// Package backoff holds the one rule by which this project waits between retries: exponential backoff with jitter.
//
// The wait before retry n is a random duration between half of d and d, where d is Base doubled n times and at
// most Max. The jitter keeps clients that lost the same server from coming back at the same moment. The lower half
// is never taken, so that a retry is never immediate.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Policy is an exponential backoff with jitter. A Policy is a value and safe for concurrent use: the caller counts
// its retries, and starts again at 0 after a success.
type Policy struct {
	Base time.Duration // the longest wait before the first retry
	Max  time.Duration // the longest wait of all; less than Base counts as Base
}

// Delay returns the wait before retry n, counted from 0. A negative n counts as 0.
func (p Policy) Delay(n int) time.Duration {
	d := p.top(n)
	if d <= 0 {
		return 0
	}
	return d - rand.N(d/2+1)
}

// top returns Base doubled n times, at most Max.
func (p Policy) top(n int) time.Duration {
	d := p.Base
	for ; n > 0 && d < p.Max; n-- {
		if d > p.Max/2 { // doubling it could overflow
			return p.Max
		}
		d *= 2
	}
	return d
}

// Wait waits for [Policy.Delay] of n. It returns early with ctx.Err() when ctx is done.
func (p Policy) Wait(ctx context.Context, n int) error {
	return Sleep(ctx, p.Delay(n))
}

// Sleep waits for d, and returns early with ctx.Err() when ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
