package hub

import (
	"errors"
	"slices"
	"sync"

	"hermes-mobile/internal/store"
)

// session is the serial queue of one device. Its state and that of its parts belong to the queue: readers, timers, the
// agent and the admin interface only post events. A goroutine applies the events one after the other, and exists while
// there are any. An event that needs no waiting is applied by whoever posts it.
type session struct {
	services *services
	parts    parts

	mu      sync.Mutex
	mailbox []event
	weight  int // bytes of the events in mailbox
	space   chan struct{}
	running bool // somebody is applying events
	dead    bool // left the hub; a new session must be made

	// The rest belongs to the queue.
	loaded  bool
	pending int // writes that nobody waits for and that are not made yet
}

// parts is what a session works for. Its methods run in the session.
type parts interface {
	// load reads what an earlier session or an earlier process left.
	load(b *batch) error
	// idle reports whether nothing needs memory: everything that matters is in the store.
	idle() bool
	// leave takes the idle session out of the hub. It reports false if the session is not in it.
	leave() bool
	// cork collects writes to the connection until the returned function is called.
	cork() (uncork func())
}

// maxMailbox bounds the bytes of events that a session has not applied; a reader that brings more waits.
const maxMailbox = 24 << 20

// maxBatch bounds the events of one transaction.
const maxBatch = 256

// evRun is an event without weight that nobody waits for.
type evRun func(*batch)

func (f evRun) apply(b *batch) { f(b) }

// run implements queue.
func (s *session) run(f func(*batch)) bool { return s.post(evRun(f)) }

// post implements queue.
func (s *session) post(e event) bool {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return false
	}
	if q, ok := e.(quick); ok && !s.running && s.loaded && q.quick() {
		s.running = true
		s.mu.Unlock()
		s.services.work.Add(1)
		s.applyQuick(q)
		return true
	}
	s.mailbox = append(s.mailbox, e)
	if w, ok := e.(weighted); ok {
		s.weight += w.weight()
	}
	start := !s.running
	s.running = true
	s.mu.Unlock()
	if start {
		s.services.work.Add(1)
		go s.work()
	}
	return true
}

// applyQuick applies an event without waiting for the commit.
func (s *session) applyQuick(e quick) {
	b := batch{session: s, event: 1}
	e.apply(&b)
	if len(b.steps) == 0 {
		s.applied()
		return
	}
	s.services.store.Go(transaction(b.steps), func(err error) {
		s.services.finish.do(func() {
			var failed map[int]error
			if err != nil {
				failed = map[int]error{b.event: err}
			}
			s.committed(b.steps, failed)
			s.applied()
		})
	})
}

// applied ends applyQuick. A goroutine applies events that were posted meanwhile.
func (s *session) applied() {
	s.mu.Lock()
	if len(s.mailbox) > 0 {
		s.mu.Unlock()
		go s.work()
		return
	}
	s.halt()
	s.mu.Unlock()
	s.services.work.Done()
}

// halt ends the work of the queue, which is empty. The caller holds the lock.
func (s *session) halt() {
	if s.pending == 0 && s.parts.idle() && s.parts.leave() {
		s.dead = true
	}
	s.running = false
	s.mailbox = nil // an idle phone holds no memory of its last messages
}

// wait blocks a reader while the session holds too much that is not applied.
func (s *session) wait() {
	for {
		s.mu.Lock()
		if s.weight <= maxMailbox || s.dead {
			s.mu.Unlock()
			return
		}
		if s.space == nil {
			s.space = make(chan struct{})
		}
		space := s.space
		s.mu.Unlock()
		<-space
	}
}

// work applies events until there are none.
func (s *session) work() {
	defer s.services.work.Done()
	for {
		s.mu.Lock()
		if len(s.mailbox) == 0 {
			s.halt()
			s.mu.Unlock()
			return
		}
		n := min(len(s.mailbox), maxBatch)
		events := s.mailbox[:n:n]
		s.mailbox = s.mailbox[n:]
		s.mu.Unlock()

		s.apply(events)

		s.mu.Lock()
		for _, e := range events {
			if w, ok := e.(weighted); ok {
				s.weight -= w.weight()
			}
			if r, ok := e.(releasing); ok {
				r.release()
			}
		}
		if s.space != nil && s.weight <= maxMailbox {
			close(s.space)
			s.space = nil
		}
		s.mu.Unlock()
	}
}

func (s *session) apply(events []event) {
	b := batch{session: s}
	if !s.loaded {
		if err := s.parts.load(&b); err != nil {
			s.services.storeFailed("load a session", err)
			for _, e := range events {
				if f, ok := e.(failing); ok {
					f.fail(err)
				}
			}
			return
		}
		s.loaded = true
	}
	for i, e := range events {
		b.event = i + 1
		e.apply(&b)
	}
	s.commit(b.steps)
}

// unload makes the session load again with the next event. It must be idle.
func (s *session) unload() { s.loaded = false }

// commit implements committer.
func (s *session) commit(steps []step) { s.committed(steps, s.save(steps)) }

// committed does what follows from steps. failed holds the errors by the number of the event.
func (s *session) committed(steps []step, failed map[int]error) {
	for _, err := range failed { // once: a full disk fails all of them
		if !refusal(err) {
			s.services.storeFailed("store events of a session", err)
			break
		}
	}
	if len(steps) > 1 { // acks of several messages, or the end of a turn: one write
		defer s.parts.cork()()
	}
	for _, st := range steps {
		if st.after != nil {
			st.after(failed[st.event])
		}
	}
}

// Reasons for which a transaction stores nothing although the store works.
var (
	errTwice   = errors.New("the delivery was made already")
	errDecided = errors.New("the card was decided before")
	// errCodeGone: another device has redeemed the code, it has expired, or its user has appeared meanwhile.
	errCodeGone = errors.New("the pairing code is no longer valid")
)

// refusal reports whether a transaction was refused, and the store did not fail.
func refusal(err error) bool {
	for _, reason := range []error{errTwice, errCodeGone, errDecided, store.ErrTooNew, store.ErrUserTaken, store.ErrManyDevices, store.ErrManyUnapproved} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// save stores steps in one transaction. If that fails each event gets a transaction of its own, so that one that cannot
// be stored does not fail the others. It returns the errors by the number of the event.
func (s *session) save(steps []step) map[int]error {
	err := s.transact(steps)
	if err == nil {
		return nil
	}
	failed := map[int]error{}
	for rest := steps; len(rest) > 0; {
		var own []step
		own, rest = split(rest)
		if len(own) < len(steps) {
			err = s.transact(own)
		}
		if err != nil {
			failed[own[0].event] = err
		}
	}
	return failed
}

// transact stores all of steps or none.
func (s *session) transact(steps []step) error {
	if !slices.ContainsFunc(steps, func(st step) bool { return st.op != nil }) {
		return nil
	}
	return s.services.store.Do(transaction(steps))
}

// later implements queue. The session stays in memory until the write is made, because the next session reads it.
func (s *session) later(op string, f func(*store.Tx) error, failed func()) {
	s.pending++
	s.services.work.Add(1) // Close waits for it, so that nothing is posted when it has returned
	s.services.store.Go(f, func(err error) {
		defer s.services.work.Done()
		if err == nil {
			failed = nil
		} else {
			s.services.storeFailed(op, err)
		}
		s.post(&evStored{s, failed})
	})
}

// evStored: a write that nobody waited for was made, or failed.
type evStored struct {
	s      *session
	failed func()
}

func (*evStored) quick() bool { return true }

func (e *evStored) apply(*batch) {
	e.s.pending--
	if e.failed != nil {
		e.failed()
	}
}
