package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/ratelimit"
)

const (
	// maxFailed is how many failed acts of one action are recorded in any minute.
	maxFailed   = 10
	failedEvery = time.Minute
	// maxActions bounds the actions that are counted. There are only a few.
	maxActions = 100
)

// failures records failed acts of strangers, such as logins with a wrong token. It records a few of
// each action, and once a minute how many more there were. A flood therefore fills neither the disk
// nor the audit log.
type failures struct {
	record   func(ctx context.Context, action, subject, detail string)
	recorded *ratelimit.Windows[string] // by action

	mu   sync.Mutex
	more map[string]int // that were not recorded in this minute, by action
}

func newFailures(record func(ctx context.Context, action, subject, detail string), now func() time.Time) *failures {
	return &failures{record: record, recorded: ratelimit.NewWindows[string](maxFailed, failedEvery, maxActions, now), more: map[string]int{}}
}

// note records a failed act of an address, or counts it.
func (f *failures) note(ctx context.Context, action, origin, detail string) {
	if _, ok := f.recorded.Allow(action); !ok {
		f.mu.Lock()
		f.more[action]++
		f.mu.Unlock()
		return
	}
	f.record(audit.With(ctx, audit.By{Actor: audit.ActorStranger, Origin: origin}), action, "", detail)
}

// run writes the counts once a minute until ctx ends, and once more then.
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
	more := f.more
	f.more = map[string]int{}
	f.mu.Unlock()
	for action, n := range more {
		f.record(ctx, action, "", fmt.Sprintf("%d more in the last minute", n))
	}
}
