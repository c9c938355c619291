package wsconn

import (
	"sync/atomic"
	"time"
)

const (
	// roomWait is how long a peer is kept waiting for room before it is told to try later. Waiting for ever could be for one another: a
	// message in several frames holds room while it waits for more.
	roomWait = 5 * time.Second
	// roomLook is how often who waits for room looks again. It is rare, and needs no queue.
	roomLook = 20 * time.Millisecond
)

// Room bounds the bytes that all connections together hold of large messages. A nil Room has no end. Safe for concurrent use.
type Room struct {
	size int64
	wait time.Duration
	held atomic.Int64
}

// NewRoom makes room for so many bytes.
func NewRoom(bytes int64) *Room { return &Room{size: bytes, wait: roomWait} }

// Take takes n bytes of the room, and waits some seconds for them where there is no room now, or until enough says that it is no use any more. It
// reports whether it has them; then Give gives them back. What is larger than the whole room has it alone.
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

// Give gives back n bytes that were taken.
func (r *Room) Give(n int64) {
	if r != nil {
		r.held.Add(-n)
	}
}

// Held is how much is taken.
func (r *Room) Held() int64 { return r.held.Load() }

// roomy makes the message able to take more bytes. Where all connections together hold too much it closes with 1013 and returns false.
func (c *Conn) roomy() bool {
	in := &c.in
	if in.msg == nil || len(in.msg.b) < cap(in.msg.b) || len(in.msg.b) < largeBuffer {
		return true
	}
	// All that the frame announces at once: who has begun can end, where many who each had a part of it would wait for one another.
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
