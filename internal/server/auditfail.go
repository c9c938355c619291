package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hermes-mobile/internal/audit"
)

const (
	// maxFailed is how many failed acts of a kind are recorded in a minute.
	maxFailed   = 10
	failedEvery = time.Minute
)

// failures records acts of strangers that failed, such as logins with a wrong token. Of each action it records the first few of
// a minute, and when the minute has ended how many more there were: a flood fills neither the disk nor the audit log.
type failures struct {
	record func(ctx context.Context, action, subject, detail string)

	mu   sync.Mutex
	seen map[string]int // in this minute, by action
}

func newFailures(record func(ctx context.Context, action, subject, detail string)) *failures {
	return &failures{record: record, seen: map[string]int{}}
}

// note records that somebody at an address failed at something, unless too many did.
func (f *failures) note(ctx context.Context, action, origin, detail string) {
	f.mu.Lock()
	f.seen[action]++
	n := f.seen[action]
	f.mu.Unlock()
	if n <= maxFailed {
		f.record(audit.With(ctx, audit.By{Actor: audit.ActorStranger, Origin: origin}), action, "", detail)
	}
}

// run ends each minute until ctx ends, and the last one then.
func (f *failures) run(ctx context.Context) {
	tick := time.NewTicker(failedEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.endMinute(ctx)
		case <-ctx.Done():
			f.endMinute(context.WithoutCancel(ctx))
			return
		}
	}
}

func (f *failures) endMinute(ctx context.Context) {
	f.mu.Lock()
	seen := f.seen
	f.seen = map[string]int{}
	f.mu.Unlock()
	for action, n := range seen {
		if more := n - maxFailed; more > 0 {
			f.record(ctx, action, "", fmt.Sprintf("%d more in the last minute", more))
		}
	}
}
