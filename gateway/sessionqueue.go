package gateway

import (
	"context"
	"sync"
)

// sessionQueue keeps the turns of one session apart, where the gateway has no lock for them: two at once would run on the
// same history, and their rows would interleave (0.19, api-facts §4.5). The zero value is ready.
type sessionQueue struct {
	mu       sync.Mutex
	sessions map[string]*sessionEntry
}

// sessionLine is the line of one session. Its token is with the turn that runs.
type sessionEntry struct {
	token    chan struct{}
	users    int    // that hold or want the token
	leftover string // a run that goes on though nobody follows it
}

// enter waits until no other turn of the session runs. The caller gives the place back by leave, once.
func (q *sessionQueue) acquire(ctx context.Context, session string) (*sessionSlot, error) {
	q.mu.Lock()
	line := q.sessions[session]
	if line == nil {
		line = &sessionEntry{token: make(chan struct{}, 1)}
		line.token <- struct{}{}
		if q.sessions == nil {
			q.sessions = map[string]*sessionEntry{}
		}
		q.sessions[session] = line
	}
	line.users++
	q.mu.Unlock()
	select {
	case <-line.token:
		return &sessionSlot{queue: q, entry: line, session: session}, nil
	case <-ctx.Done():
		q.drop(session, line)
		return nil, ctx.Err()
	}
}

// drop forgets a line that nobody uses and that left no run.
func (q *sessionQueue) drop(session string, line *sessionEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line.users--; line.users == 0 && line.leftover == "" {
		delete(q.sessions, session)
	}
}

// sessionPlace is the right to run a turn in a session.
type sessionSlot struct {
	queue   *sessionQueue
	entry   *sessionEntry
	session string
	once    sync.Once
}

// left is the run that was left before this place was taken; empty where there is none.
func (p *sessionSlot) leftover() string { return p.entry.leftover }

// settled says that the run that was left is over.
func (p *sessionSlot) clearLeftover() { p.entry.leftover = "" }

// leave gives the place to the next. run is what goes on without a reader; empty where the turn is over. A nil place is
// none, and only the first call counts.
func (p *sessionSlot) release(run string) {
	if p == nil {
		return
	}
	p.once.Do(func() {
		p.entry.leftover = run
		p.entry.token <- struct{}{}
		p.queue.drop(p.session, p.entry)
	})
}
