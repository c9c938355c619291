package wsconn

import (
	"errors"
	"time"
)

// A goroutine keeps the stack that it grew for its last message: a collection halves a stack only
// if less than a quarter of it is in use. So after some seconds without traffic the reading
// goroutine ends, and another waits in its place. That one does so little that it never grows its
// initial 2 KiB, and starts a new reading goroutine when something arrives. After a pong that one
// rests again at once. A busy connection pays nothing for this.

// errRest ends a reading goroutine that should rest.
var errRest = errors.New("wsconn: at rest")

// park waits for the peer on a small stack. It must not call anything that needs a larger one until
// the wait is over.
func (c *Conn) park() {
	c.in.parked, c.in.looked = true, false
	c.seen.Store(c.in.since)
	if err := c.rc.Read(c.readFn); err != nil {
		c.in.err = err
	}
	go c.wake()
}

// tryParked is tryRead for park. It doesn't know what arrived before the wait, so it tries once,
// with room for a byte.
func (c *Conn) tryParked(fd uintptr) bool {
	in := &c.in
	if in.looked {
		return true
	}
	in.looked = true
	n, again, err := rawRead(fd, in.one[:])
	if n > 0 {
		in.first = in.one[:n]
	}
	in.err = err
	return !again
}

// wake is the reading goroutine that follows park.
func (c *Conn) wake() {
	c.seen.Store(busy)
	c.in.parked, c.in.idle = false, true
	c.mu.Lock()
	c.resting = false
	c.mu.Unlock()
	if in := &c.in; in.err == nil && in.first == nil {
		in.err = c.fill()
	}
	c.read()
}

// rest tells the reading goroutine to park, by a deadline in the past. The Keeper calls it.
func (c *Conn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rc == nil || c.resting || c.closing || c.dead {
		return // a closing connection has a deadline of its own
	}
	c.resting = true
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// toldToRest reports whether a timeout may come from rest, whose deadline it clears, and whether to
// park then.
func (c *Conn) toldToRest() (told, park bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.resting {
		return false, false
	}
	if !c.closing {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	c.resting = c.in.between()
	return true, c.resting
}

// restsAgain reports whether to park at once, because only the answer to a ping arrived.
func (c *Conn) restsAgain() bool {
	if !c.in.idle || !c.in.between() || c.discard.Load() {
		return false
	}
	c.in.since = c.opt.Keeper.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.resting // with a deadline that ends the next wait
	c.resting = true
	return !told
}

// between reports whether no message has begun and nothing is left to parse.
func (in *reader) between() bool { return in.buf == nil && in.msg == nil && in.left == 0 }
