package device

import (
	"fmt"
	"sync"
	"time"

	"hermes-mobile/frame"
)

// An ack goes out after this many handled events, or this long after the first of them.
const (
	ackEvery = 50
	ackAfter = 250 * time.Millisecond
)

// acks holds the cursor, which tells how far the app has handled events, and what the server must
// hear of it. The store gets each cursor first, because the server forgets what the device
// acknowledges.
type acks struct {
	store Store
	in    *inbox
	wake  chan struct{}

	saving sync.Mutex // keeps the order of cursors in the store

	mu     sync.Mutex
	cursor frame.Cursor // handled by the app and stored
	epoch  string       // of the outbox that the current connection sends
	seq    int64        // the ack that is due
	seen   bool
	count  int // events since the last ack
	since  time.Time
}

func newAcks(store Store, in *inbox, wake chan struct{}, cursor frame.Cursor) *acks {
	return &acks{store: store, in: in, wake: wake, cursor: cursor, epoch: cursor.Epoch}
}

// current returns the cursor to resume from, or nil. It never claims events that
// are only in memory: the server would forget them.
func (a *acks) current() *frame.Cursor {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cursor.Epoch == "" {
		return nil
	}
	c := a.cursor
	return &c
}

// handled moves the cursor to a durable event of an outbox. Other events have seq 0.
func (a *acks) handled(epoch string, seq int64) {
	if seq == 0 {
		return
	}
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	current := epoch == a.epoch && (seq > a.cursor.Seq || epoch != a.cursor.Epoch)
	a.mu.Unlock()
	c := frame.Cursor{Epoch: epoch, Seq: seq}
	if !current || !a.save(c) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.epoch == epoch {
		a.cursor = c
		a.dueLocked(seq)
	}
}

func (a *acks) save(c frame.Cursor) bool {
	if err := a.store.SetCursor(c); err != nil {
		a.in.push(queued{ev: Problem{fmt.Errorf("device: store cursor: %w", err)}, key: "store"})
		return false
	}
	return true
}

func (a *acks) dueLocked(seq int64) {
	if a.count == 0 {
		a.since = time.Now()
	}
	a.seq = seq
	a.count++
	if a.count == 1 || a.count >= ackEvery {
		signal(a.wake)
	}
}

func (a *acks) markSeen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cursor.Seq > 0 {
		a.seen = true
		a.dueLocked(a.cursor.Seq)
	}
}

// wait returns the time until an ack is due: 0 for now, false when there is nothing to acknowledge.
func (a *acks) wait(now time.Time) (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == 0 {
		return 0, false
	}
	if a.count >= ackEvery {
		return 0, true
	}
	return max(ackAfter-now.Sub(a.since), 0), true
}

// take returns the ack that is due, or nil.
func (a *acks) take() *frame.Ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == 0 {
		return nil
	}
	ack := &frame.Ack{Seq: a.seq, Seen: a.seen}
	a.clearLocked()
	return ack
}

func (a *acks) clearLocked() { a.seq, a.seen, a.count = 0, false, 0 }

// resume adopts the outbox that a new connection sends. It reports whether that is another outbox
// or another place in it, and the seq before its first frame. The hello told the server the cursor,
// so no ack is due.
func (a *acks) resume(s frame.Span) (at int64, moved bool) {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	a.clearLocked()
	if s.Epoch == "" { // a server without an outbox numbers nothing, and a cursor means nothing
		a.epoch = ""
		a.mu.Unlock()
		return 0, true
	}
	if s.Epoch == a.epoch && !s.Lost {
		a.mu.Unlock()
		return 0, false
	}
	lost := a.cursor.Epoch != ""
	at = max(s.From-1, 0)
	a.epoch, a.cursor = s.Epoch, frame.Cursor{Epoch: s.Epoch, Seq: at}
	c := a.cursor
	a.mu.Unlock()
	if lost {
		a.in.push(queued{ev: HistoryLost{}})
	}
	// From here on this device resumes: events that it does not handle must come again, even before
	// the first ack.
	a.save(c)
	return at, true
}
