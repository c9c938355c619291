package hub

import (
	"slices"

	"hermes-mobile/internal/store"
)

// event is something that happens to a session. apply runs in the session: it checks, adds what must be stored to the
// batch, and what follows from it. Code that depends on earlier events of the same batch belongs in the latter.
//
// Most events are functions (see queue.run). A type of its own is for an event with a weight, one that somebody waits
// for, or one that can be quick.
type event interface{ apply(b *batch) }

// weighted is an event that holds many bytes.
type weighted interface{ weight() int }

// quick is an event that may need no waiting while it is applied. If the session does nothing else, whoever posts the
// event applies it, which saves a goroutine: nearly all that is streamed, and texts that are delivered.
type quick interface {
	event
	// quick is asked in the session.
	quick() bool
}

// failing is an event that somebody waits for.
type failing interface {
	// fail is called instead of apply if the session cannot be loaded.
	fail(err error)
}

// releasing is an event that holds something until it was applied, or failed.
type releasing interface{ release() }

// queue is a session as its parts see it.
type queue interface {
	// post gives the session an event. It never blocks. It reports false if the session has left the hub.
	post(e event) bool
	// run posts f as an event.
	run(f func(*batch)) bool
	// later stores something without waiting for it. failed, which may be nil, runs in the session if that fails.
	later(op string, f func(*store.Tx) error, failed func())
}

// batch collects what events of a session store in one transaction, and what follows from it, in order.
type batch struct {
	session committer
	steps   []step
	event   int // number of the event that adds steps now; 0 while the session is loaded
}

// committer stores steps, then does what follows from them.
type committer interface{ commit(steps []step) }

type step struct {
	event int
	op    func(*store.Tx) error
	after func(error)
}

// do stores something, then calls after with the outcome. The steps of one event are stored together or not at all.
func (b *batch) do(op func(*store.Tx) error, after func(error)) {
	b.steps = append(b.steps, step{b.event, op, after})
}

// then runs f once all earlier steps are stored, or at once if there are none. f does not run if storing this event
// failed.
func (b *batch) then(f func()) {
	if len(b.steps) == 0 {
		f()
		return
	}
	b.do(nil, func(err error) {
		if err == nil {
			f()
		}
	})
}

// flush stores the steps so far, for an event that depends on them.
func (b *batch) flush() {
	if len(b.steps) > 0 {
		b.session.commit(b.steps)
		b.steps = nil
	}
}

// transaction returns what stores steps.
func transaction(steps []step) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, st := range steps {
			if st.op != nil {
				if err := st.op(tx); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// split returns the steps of the first event, and the rest.
func split(steps []step) (first, rest []step) {
	n := slices.IndexFunc(steps, func(st step) bool { return st.event != steps[0].event })
	if n < 0 {
		n = len(steps)
	}
	return steps[:n], steps[n:]
}
