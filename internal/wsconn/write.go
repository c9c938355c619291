package wsconn

import (
	"errors"
	"net"
	"os"
	"time"
)

// streamChunk is how much a stream gets at a time: one TLS record. The stall limit applies to each,
// because a stream doesn't report what it has passed on.
const streamChunk = 16 << 10

// write makes sure that the queue gets written. Call it with the lock held. It returns with the
// lock released.
//
// The duty to write is a flag, not a goroutine: the caller takes it for one attempt that doesn't
// wait, and passes it on to a goroutine only if the socket is full. If the flag is set, the caller
// only has to queue.
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
	if err := c.rc.Write(c.writeFn); err != nil { // there was no attempt
		c.mu.Lock()
		c.failWrite(err)
		c.mu.Unlock()
	}
}

// startWriter passes the duty to write to a new goroutine. Callers hold the lock.
func (c *Conn) startWriter(run func()) {
	c.writers++
	c.noteAbove()
	go func() {
		run()
		c.writerEnded()
	}()
}

// noteAbove records that Drained is due. It isn't called for data that the caller of Send writes
// itself, which never waited.
func (c *Conn) noteAbove() {
	if c.out.size+c.inFlight > c.opt.LowWater {
		c.above = true
	}
}

// drained reports, once, that the queue has fallen to LowWater. Callers hold the lock.
func (c *Conn) drained() bool {
	if !c.above || c.closing || c.dead || c.h == nil || c.out.size+c.inFlight > c.opt.LowWater {
		return false
	}
	c.above = false
	return true
}

// tryWrite is the attempt of a caller that has the duty to write, run by RawConn.Write. It always
// ends the wait there.
func (c *Conn) tryWrite(fd uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, full := c.flush(fd); full {
		c.startWriter(c.writeRaw)
	} else if c.drained() {
		// Others queued during this write. Its caller may hold locks of its own, so another
		// goroutine calls Drained.
		c.startWriter(func() { c.h.Drained(c) })
	}
	return true
}

// flush writes until the queue is empty or the socket is full or broken. It releases the duty to
// write unless the socket is full. Callers hold the lock, because the writes don't wait.
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

// writeRaw is the goroutine that writes while the socket keeps filling up.
func (c *Conn) writeRaw() {
	var moved int
	var more, wait bool
	try := func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		moved, more = c.flush(fd)
		if !more && !c.dead {
			// Reset the deadline before another takes the duty: a past deadline would fail its
			// attempt.
			_ = c.nc.SetWriteDeadline(time.Time{})
		}
		return moved > 0 || !more || !wait
	}
	for more = true; more; {
		c.limitWrite()
		wait = true
		err := c.rc.Write(try)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// A full socket reports room only when a good part of it is free. On a slow link with a
			// big buffer that takes longer than the limit. If the socket accepts a byte now, the
			// peer is alive.
			c.limitWrite()
			wait, moved = false, 0
			err = c.rc.Write(try)
			if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && more && moved == 0 {
				c.kill(ErrSlow, reset)
				return
			}
		}
		c.mu.Lock()
		if err != nil { // the socket was closed during the wait
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

// writeStream is the goroutine that writes to a stream.
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

// sentClose records that our close frame is written. If the peer's has arrived too, the reading
// goroutine has nothing to wait for. A deadline wakes it, because the socket can't be closed from
// here. Callers hold the lock.
func (c *Conn) sentClose() {
	c.closeSent = true
	if c.peerClose {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// failWrite ends all writing. Reading goes on for a moment: a peer that closed and left may have
// sent a close frame and messages before. Callers hold the lock.
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
