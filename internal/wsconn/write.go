package wsconn

import (
	"errors"
	"net"
	"os"
	"time"
)

// streamChunk is how much a stream is given at a time: one TLS record. The stall
// limit holds for each, because a stream does not tell what it has passed on.
const streamChunk = 16 << 10

// write sees to it that what is queued gets written. It is called with the lock
// held and returns with it released.
//
// The duty to write is a flag, not a goroutine: the caller takes it for one
// attempt that does not wait, and passes it on to a goroutine only when the
// socket is full. Whoever finds the flag set has nothing to do but queue.
func (c *Conn) write() {
	if c.writing || c.dead || c.corked > 0 {
		c.noteAbove()
		c.mu.Unlock()
		return
	}
	c.writing = true
	if c.rc == nil {
		c.startWriter(c.writeStream)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	if err := c.rc.Write(c.writeFn); err != nil { // the attempt was not made
		c.mu.Lock()
		c.failWrite(err)
		c.mu.Unlock()
	}
}

// startWriter passes the duty to write to a new goroutine. With the lock held.
func (c *Conn) startWriter(run func()) {
	c.writers++
	c.noteAbove()
	go func() {
		run()
		c.writerEnded()
	}()
}

// noteAbove remembers that Drained is due. It is not called for what the caller
// of Send writes itself: that was never waiting.
func (c *Conn) noteAbove() {
	if c.out.size+c.inFlight > c.opt.LowWater {
		c.above = true
	}
}

// drained reports, once, that the queue has fallen to LowWater. With the lock held.
func (c *Conn) drained() bool {
	if !c.above || c.closing || c.dead || c.h == nil || c.out.size+c.inFlight > c.opt.LowWater {
		return false
	}
	c.above = false
	return true
}

// tryWrite is the attempt of a caller that has the duty to write, run by
// RawConn.Write. It always ends the wait there.
func (c *Conn) tryWrite(fd uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, full := c.flush(fd); full {
		c.startWriter(c.writeRaw)
	} else if c.drained() {
		// Others queued while this one wrote. Its caller may hold locks of its
		// own, so Drained is told from elsewhere.
		c.startWriter(func() { c.h.Drained(c) })
	}
	return true
}

// flush writes until the queue is empty, the socket is full or broken, and gives
// the duty to write back unless the socket is full. With the lock held: the
// writes do not wait.
func (c *Conn) flush(fd uintptr) (n int, full bool) {
	for c.out.size > 0 {
		b := getBuffer(c.out.size)
		w, again, err := rawWrite(fd, b.b[:c.out.gather(b)])
		b.put()
		n += w
		if c.out.advance(w) {
			c.sentClose()
		}
		if err != nil {
			c.failWrite(err)
			return n, false
		}
		if again {
			return n, true
		}
	}
	c.writing = false
	return n, false
}

// writeRaw is the goroutine that writes while the socket is full again and again.
func (c *Conn) writeRaw() {
	var moved int
	var more, wait bool
	try := func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		moved, more = c.flush(fd)
		if !more && !c.dead {
			// Before another takes the duty: a deadline of the past would
			// fail its attempt.
			_ = c.nc.SetWriteDeadline(time.Time{})
		}
		return moved > 0 || !more || !wait
	}
	for more = true; more; {
		c.limitWrite()
		wait = true
		err := c.rc.Write(try)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// A full socket reports room only when a good part of it is
			// free, which on a slow link with a big buffer takes longer than
			// the peer deserves. If it takes a byte now, the peer lives.
			c.limitWrite()
			wait, moved = false, 0
			err = c.rc.Write(try)
			if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && more && moved == 0 {
				c.kill(ErrSlow, reset)
				return
			}
		}
		c.mu.Lock()
		if err != nil { // of the wait: the socket is closed
			c.failWrite(err)
			more = false
		}
		tell := c.drained()
		c.mu.Unlock()
		if tell {
			c.h.Drained(c)
		}
	}
}

// writeStream is the goroutine that writes to what is not a raw socket.
func (c *Conn) writeStream() {
	for {
		c.mu.Lock()
		if c.dead || c.out.size == 0 {
			c.writing = false
			_ = c.nc.SetWriteDeadline(time.Time{})
			c.mu.Unlock()
			return
		}
		b := getBuffer(min(c.out.size, streamChunk))
		b.b = b.b[:min(len(b.b), streamChunk)]
		n := c.out.gather(b)
		closeTaken := c.out.advance(n)
		c.inFlight = n
		c.mu.Unlock()

		c.limitWrite()
		_, err := c.nc.Write(b.b[:n])
		b.put()
		if isTimeout(err) {
			c.kill(ErrSlow, reset)
			return
		}
		c.mu.Lock()
		c.inFlight = 0
		if err != nil {
			c.failWrite(err)
			c.mu.Unlock()
			return
		}
		if closeTaken {
			c.sentClose()
		}
		tell := c.drained()
		c.mu.Unlock()
		if tell {
			c.h.Drained(c)
		}
	}
}

func (c *Conn) limitWrite() {
	if c.opt.WriteStall > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.opt.WriteStall))
	}
}

// sentClose notes that our close frame is written. When the peer's is in too
// the reading goroutine has nothing to wait for: its deadline wakes it, because the
// socket cannot be closed from here. With the lock held.
func (c *Conn) sentClose() {
	c.closeSent = true
	if c.peerClose {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// failWrite ends all writing. Reading goes on for a moment: a peer that closed
// and left has put its close frame, and perhaps messages, before the end. With
// the lock held.
func (c *Conn) failWrite(err error) {
	c.writing = false
	c.closing = true
	if c.dead || c.writeErr != nil {
		return
	}
	c.writeErr = err
	c.lost += c.out.size + 1 // at least what was being written
	c.out.reset()
	_ = c.nc.SetReadDeadline(time.Now().Add(afterWriteError))
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
