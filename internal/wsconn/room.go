package wsconn

import (
	"sync/atomic"
	"time"
)

const (
	// roomWait is how long a peer waits for memory before it is told to try later. Waiting forever
	// could deadlock: a message in several frames holds memory while it waits for more.
	roomWait = 5 * time.Second
	// roomLook is how often a waiting message retries. Waits are rare and need no queue.
	roomLook = 20 * time.Millisecond
)

// Room is the memory budget for the large messages of all connections together, in bytes. A nil
// Room has no limit. It is safe for concurrent use.
type Room struct {
	size int64
	wait time.Duration
	held atomic.Int64
}

// NewRoom returns a budget of so many bytes.
func NewRoom(bytes int64) *Room { return &Room{size: bytes, wait: roomWait} }

// Take takes n bytes of the budget. If they aren't available, it waits some seconds, or until
// enough reports that the wait is pointless. It reports whether it got them; then the caller must
// call Give. A message larger than the whole budget may have all of it.
func (r *Room) Take(n int64, enough func() bool) bool {
	if r == nil {
		return true
	}
	for end := time.Now().Add(r.wait); ; time.Sleep(roomLook) {
		switch held := r.held.Load(); {
		case held > 0 && held+n > r.size:
			if enough() || time.Now().After(end) {
				return false
			}
		case r.held.CompareAndSwap(held, held+n):
			return true
		}
	}
}

// Give returns n bytes to the budget.
func (r *Room) Give(n int64) {
	if r != nil {
		r.held.Add(-n)
	}
}

// Held returns how many bytes are taken.
func (r *Room) Held() int64 { return r.held.Load() }

// roomy reserves memory for more bytes of the message. If all connections together hold too much,
// it closes with 1013 and returns false.
func (c *Conn) roomy() bool {
	in := &c.in
	if in.msg == nil || len(in.msg.b) < cap(in.msg.b) || len(in.msg.b) < largeBuffer {
		return true
	}
	// Take everything the frame announces at once. Then a message that has begun can finish. With
	// parts, several messages could wait for one another.
	more := max(in.next(), int64(len(in.msg.b))+in.left) - in.held
	if more <= 0 {
		return true
	}
	if !c.opt.Room.Take(more, c.discard.Load) {
		c.shut(CodeTryLater, "too much is being sent at once", false)
		return false
	}
	in.held += more
	return true
}
