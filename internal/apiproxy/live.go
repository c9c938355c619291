package apiproxy

import (
	"context"
	"errors"
	"sync"
)

// Reasons for ending a request early.
var (
	errEnded   = errors.New("the login has ended")
	errClosing = errors.New("the server is stopping")
)

// live has the running requests, so the end of a login can end them.
type live struct {
	mu   sync.Mutex
	next int
	all  map[int]alive
}

type alive struct {
	user, login string
	cancel      context.CancelCauseFunc
}

func newLive() *live { return &live{all: map[int]alive{}} }

// begin registers a request. The caller must call done at its end.
func (l *live) begin(ctx context.Context, user, login string) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.next
	l.next++
	l.all[n] = alive{user, login, cancel}
	return ctx, func() {
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, n)
	}
}

// end ends the requests of a login, or all of a user.
func (l *live) end(user, login string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		if user != "" && a.user == user || login != "" && a.login == login {
			a.cancel(errEnded)
		}
	}
}

// close ends all requests.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		a.cancel(errClosing)
	}
}
