package relay

import "sync"

// sequencer guards the state of one gateway, and tells others about its changes in their order.
type sequencer struct {
	sync.Mutex
	after func() // called locked after each change; may be nil

	pending []func() // what must be told after unlocking
	spare   []func() // the slice of the last time, empty, for reuse
	telling bool
}

// maxSpare bounds the slice that is kept for reuse.
const maxSpare = 256

// do changes the state under the lock, and then tells others what the change noted. If another
// goroutine is telling, it is left to that one: so the order is kept and nobody waits.
func (s *sequencer) do(change func()) {
	s.Lock()
	change()
	if s.after != nil {
		s.after()
	}
	if s.telling {
		s.Unlock()
		return
	}
	s.telling = true
	for len(s.pending) > 0 {
		batch := s.pending
		s.pending, s.spare = s.spare, nil
		s.Unlock()
		for _, tell := range batch {
			tell()
		}
		clear(batch)
		s.Lock()
		if cap(batch) <= maxSpare {
			s.spare = batch[:0]
		}
	}
	s.telling = false
	s.Unlock()
}

// later notes what must be told after unlocking. The lock must be held.
func (s *sequencer) later(tell func()) { s.pending = append(s.pending, tell) }

// quiet reports whether nothing is left to be told. The lock must be held.
func (s *sequencer) quiet() bool { return !s.telling && len(s.pending) == 0 }
