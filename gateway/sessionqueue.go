package gateway

import (
	"context"
	"sync"
)

// sessionQueue runs the turns of one session one after the other, for gateways that do not. Two
// turns at once would run on the same history, and their rows would interleave (0.19,
// doc/hermes/api.md §4.5). The zero value is ready for use.
type sessionQueue struct {
	mu       sync.Mutex
	sessions map[string]*sessionEntry
}

// sessionEntry is the queue of one session. The running turn holds its token.
type sessionEntry struct {
	token    chan struct{}
	users    int    // turns that hold or wait for the token
	leftover string // ID of a run that continues without a reader
}

// acquire waits until no other turn of the session runs. The caller must release the slot.
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

// drop deletes an entry without users and leftover run.
func (q *sessionQueue) drop(session string, line *sessionEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line.users--; line.users == 0 && line.leftover == "" {
		delete(q.sessions, session)
	}
}

// sessionSlot is the right to run a turn in a session.
type sessionSlot struct {
	queue   *sessionQueue
	entry   *sessionEntry
	session string
	once    sync.Once
}

// leftover returns the run that continued before this slot was acquired, or an empty string.
func (p *sessionSlot) leftover() string { return p.entry.leftover }

// clearLeftover records that the leftover run has ended.
func (p *sessionSlot) clearLeftover() { p.entry.leftover = "" }

// release passes the slot on. run is the ID of a run that continues without a reader, empty if the
// turn has ended. A nil slot does nothing, and only the first call counts.
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
