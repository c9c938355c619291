package gateway

import (
	"context"
	"sync"
)

// sessionQueue keeps the turns of one session apart, where the gateway has no lock for them: two at once would run on the
// same history, and their rows would interleave (0.19, api-facts §4.5). The zero value is ready.
type sessionQueue struct {
	mu    sync.Mutex
	lines map[string]*sessionLine
}

// sessionLine is the line of one session. Its token is with the turn that runs.
type sessionLine struct {
	token chan struct{}
	users int    // that hold or want the token
	left  string // a run that goes on though nobody follows it
}

// enter waits until no other turn of the session runs. The caller gives the place back by leave, once.
func (q *sessionQueue) enter(ctx context.Context, session string) (*sessionPlace, error) {
	q.mu.Lock()
	line := q.lines[session]
	if line == nil {
		line = &sessionLine{token: make(chan struct{}, 1)}
		line.token <- struct{}{}
		if q.lines == nil {
			q.lines = map[string]*sessionLine{}
		}
		q.lines[session] = line
	}
	line.users++
	q.mu.Unlock()
	select {
	case <-line.token:
		return &sessionPlace{queue: q, line: line, session: session}, nil
	case <-ctx.Done():
		q.drop(session, line)
		return nil, ctx.Err()
	}
}

// drop forgets a line that nobody uses and that left no run.
func (q *sessionQueue) drop(session string, line *sessionLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line.users--; line.users == 0 && line.left == "" {
		delete(q.lines, session)
	}
}

// sessionPlace is the right to run a turn in a session.
type sessionPlace struct {
	queue   *sessionQueue
	line    *sessionLine
	session string
	once    sync.Once
}

// left is the run that was left before this place was taken; empty where there is none.
func (p *sessionPlace) left() string { return p.line.left }

// settled says that the run that was left is over.
func (p *sessionPlace) settled() { p.line.left = "" }

// leave gives the place to the next. run is what goes on without a reader; empty where the turn is over. A nil place is
// none, and only the first call counts.
func (p *sessionPlace) leave(run string) {
	if p == nil {
		return
	}
	p.once.Do(func() {
		p.line.left = run
		p.line.token <- struct{}{}
		p.queue.drop(p.session, p.line)
	})
}
