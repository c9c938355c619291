package device

import (
	"context"
	"sync"
	"time"
)

// inbox is what waits for the Events loop. Its methods may be called from any goroutine; take and settle by one consumer.
type inbox struct {
	mu    sync.Mutex
	items []queued
	bytes int
	limit int
	taken bool          // items[0] is in the hands of the loop
	more  chan struct{} // 1 slot: something was pushed
	room  chan struct{} // 1 slot: something was settled
}

type queued struct {
	ev    Event
	size  int    // bytes, about
	epoch string // with seq: the outbox life it belongs to
	seq   int64  // the cursor once this one is handled; 0 for live events
	key   string // a newer live event of the same key replaces this one
	spare bool   // may be dropped when the inbox is full
}

func newInbox(limit int) *inbox {
	return &inbox{limit: limit, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds an event, whatever the limit, unless it is spare. A live event with a key takes the place of an older one
// that waits behind the last durable one: the loop sees the newest state, and never one from before a durable event late.
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
		// The states of a moment stand close together; looking further back would cost more than one event too many.
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

// waitRoom waits until the inbox is under its limit, for at most the time given; false: it is still full.
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

// take waits for the next event and leaves it in place until settle. False: stop or ctx ended.
func (b *inbox) take(ctx context.Context, stop <-chan struct{}) (queued, bool) {
	for {
		select { // the end comes before what is left
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

// settle ends what take began: the event is handled and removed, or stays the next one. It reports whether none is left.
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

// signal wakes whoever waits on a channel of one slot.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
