package hub

import (
	"context"
	"sync"
)

// tally counts running work. Unlike a sync.WaitGroup it may rise from zero while somebody waits: a session starts to work
// for whoever posts to it, also while the hub is being closed.
type tally struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed when n falls to zero; nil while nobody waits
}

func (t *tally) Add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n += n; t.n == 0 && t.zero != nil {
		close(t.zero)
		t.zero = nil
	}
}

func (t *tally) Done() { t.Add(-1) }

// Wait returns when the count has been zero once.
func (t *tally) Wait() {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return
	}
	if t.zero == nil {
		t.zero = make(chan struct{})
	}
	zero := t.zero
	t.mu.Unlock()
	<-zero
}

// wait calls f and returns when f has returned or ctx has ended.
func wait(ctx context.Context, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
