package device

import (
	"context"
	"sync"
	"time"
)

// inbox holds the events that wait for the Events loop. Its methods are safe for concurrent use,
// except that one consumer at a time calls take and settle.
type inbox struct {
	mu    sync.Mutex
	items []queued
	bytes int
	limit int
	taken bool          // the loop has items[0]
	more  chan struct{} // 1 slot: an event came
	room  chan struct{} // 1 slot: an event was handled
}

type queued struct {
	ev    Event
	size  int    // bytes, approximately
	epoch string // with seq: the epoch of its outbox
	seq   int64  // the cursor once the event is handled; 0 for live events
	key   string // a newer live event with the same key replaces this one
	spare bool   // dropped when the inbox is full
}

func newInbox(limit int) *inbox {
	return &inbox{limit: limit, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds an event regardless of the limit, unless it is spare. A live event with a key replaces
// an earlier one that waits behind the last durable event, so the loop sees the newest state, and
// never a state from before a durable event after it.
func (b *inbox) push(q queued) {
	q.size += 64
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.spare && b.bytes > b.limit {
		return
	}
	if q.key != "" {
		first := 0
		if b.taken {
			first = 1
		}
		// Events that replace one another are close together. Looking further back would cost more
		// than an event too many.
		first = max(first, len(b.items)-64)
		for i := len(b.items) - 1; i >= first && b.items[i].seq == 0; i-- {
			if b.items[i].key == q.key {
				b.bytes += q.size - b.items[i].size
				b.items[i] = q
				return
			}
		}
	}
	b.items = append(b.items, q)
	b.bytes += q.size
	signal(b.more)
}

// waitRoom waits until the inbox is below its limit, for at most the given time. It reports false
// if the inbox is still full.
func (b *inbox) waitRoom(ctx context.Context, wait time.Duration) bool {
	var timeout <-chan time.Time
	for {
		b.mu.Lock()
		free := b.bytes <= b.limit
		b.mu.Unlock()
		if free {
			return true
		}
		if timeout == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-b.room:
		case <-timeout:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// take waits for the next event, which stays in place until settle. It reports false when stop or
// ctx ended.
func (b *inbox) take(ctx context.Context, stop <-chan struct{}) (queued, bool) {
	for {
		select { // the end takes precedence over waiting events
		case <-stop:
			return queued{}, false
		case <-ctx.Done():
			return queued{}, false
		default:
		}
		b.mu.Lock()
		if len(b.items) > 0 {
			b.taken = true
			q := b.items[0]
			b.mu.Unlock()
			return q, true
		}
		b.mu.Unlock()
		select {
		case <-b.more:
		case <-stop:
			return queued{}, false
		case <-ctx.Done():
			return queued{}, false
		}
	}
}

// settle completes a take: it removes a handled event, or leaves it as the next one. It reports
// whether the inbox is empty.
func (b *inbox) settle(handled bool) (empty bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = false
	if handled {
		b.bytes -= b.items[0].size
		b.items[0] = queued{}
		b.items = b.items[1:]
		signal(b.room)
	}
	if len(b.items) > 0 {
		signal(b.more)
	}
	return len(b.items) == 0
}

func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}

// signal wakes the goroutine that waits on a channel with one slot.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
