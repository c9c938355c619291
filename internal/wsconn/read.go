package wsconn

import (
	"errors"
	"io"
	"net"

	"github.com/gobwas/ws"
)

const (
	// directMin is the minimum rest of a frame that is read straight into its message. A smaller
	// one is read together with what follows it.
	directMin = 4 << 10
	// discardMax is how much data after our close is dropped before the peer is cut off.
	discardMax = 64 << 20
)

// errFinished ends the reading loop: both close frames are through, or the peer has sent too much
// after ours. The cause is already recorded.
var errFinished = errors.New("wsconn: finished")

// reader is the state of the reading goroutine.
type reader struct {
	first []byte  // arrived together with the upgrade request
	buf   *buffer // nil while there is nothing to parse
	r, w  int     // buf.b[r:w] is still to parse
	err   error   // of tryRead, and of parking
	one   [1]byte // for the wait of a stream, and of a parked connection

	since  uint32 // Keeper's tick of the last traffic, during silence
	parked bool   // park waits
	looked bool   // it has tried to read
	idle   bool   // no message since then

	max   int64   // Options.MaxMessage
	msg   *buffer // the message so far, nil while it is empty
	left  int64   // missing bytes of the current data frame
	off   int     // their offset in the mask
	mask  [4]byte
	fin   bool // the current frame is the last of its message
	frag  bool // a message has begun and waits for its next frame
	text  bool
	whole bool  // msg is complete
	held  int64 // of Options.Room

	broken    bool  // ignore all further data
	discarded int64 // bytes after our close
}

// space returns room for the next bytes of the current frame. It grows with the received bytes,
// whatever the frame announces.
func (in *reader) space() []byte {
	if in.msg == nil {
		in.msg = getBuffer(smallBuffer)
		in.msg.b = in.msg.b[:0]
	}
	n := len(in.msg.b)
	if n == cap(in.msg.b) {
		var to *buffer
		if n < largeBuffer {
			to = getBuffer(largeBuffer)
		} else {
			to = &buffer{b: make([]byte, in.next())}
		}
		to.b = to.b[:copy(to.b, in.msg.b)]
		in.msg.put()
		in.msg = to
	}
	return in.msg.b[n:min(int64(cap(in.msg.b)), int64(n)+in.left)]
}

// next returns the size of the buffer that a large message grows into. For the last frame the size
// is known. Before it the size doubles. Otherwise a message in frames of one byte would be copied
// for each of them.
func (in *reader) next() int64 {
	n := int64(len(in.msg.b))
	if in.fin {
		return min(n*2, n+in.left)
	}
	if in.max > 0 {
		return max(min(n*2, in.max), n+1)
	}
	return n * 2
}

// added appends the first n bytes of space, still masked, to the message.
func (in *reader) added(n int) {
	old := len(in.msg.b)
	in.msg.b = in.msg.b[:old+n]
	ws.Cipher(in.msg.b[old:], in.mask, in.off)
	in.off = (in.off + n) & 3
	in.passed(n)
}

// passed counts n bytes of the current frame.
func (in *reader) passed(n int) {
	in.left -= int64(n)
	if in.left == 0 {
		in.frag, in.whole = !in.fin, in.fin
	}
}

func (in *reader) release() {
	if in.buf != nil {
		in.buf.put()
		in.buf, in.r, in.w = nil, 0, 0
	}
}

func (c *Conn) releaseMessage() {
	if in := &c.in; in.msg != nil {
		in.msg.put()
		c.opt.Room.Give(in.held)
		in.msg, in.held = nil, 0
	}
}

// read is the reading goroutine.
func (c *Conn) read() {
	err := c.readAll()
	if errors.Is(err, errRest) {
		go c.park()
		return
	}
	c.in.release()
	c.releaseMessage()
	c.opt.Keeper.remove(c)
	c.mu.Lock()
	if c.writeErr != nil && isTimeout(err) {
		err = c.writeErr
	}
	c.mu.Unlock()
	c.kill(err, gentle)
	c.readerEnded()
}

func (c *Conn) readAll() error {
	in := &c.in
	err := in.err
	in.err = nil
	if n := len(in.first); n > 0 {
		if in.buf = getBuffer(n); n > len(in.buf.b) {
			in.buf.b = make([]byte, n)
		}
		in.w = copy(in.buf.b, in.first)
		in.first = nil
	}
	for {
		if err == nil {
			if err := c.parseAll(); err != nil {
				return err
			}
			if c.restsAgain() {
				return errRest
			}
			err = c.fill()
		}
		switch {
		case err == nil:
		case !isTimeout(err):
			return c.readError(err)
		default:
			told, park := c.toldToRest()
			if park {
				return errRest
			}
			if !told && c.overdue() {
				return c.readError(err)
			}
			err = nil
		}
	}
}

// readError translates the error of a socket that we closed ourselves.
func (c *Conn) readError(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return ErrClosed
	}
	return err
}

// fill waits for bytes. Only one case waits without a buffer, and that is an idle connection.
func (c *Conn) fill() error {
	in := &c.in
	in.since = c.opt.Keeper.now()
	c.seen.Store(in.since)
	defer c.seen.Store(busy)
	switch {
	case in.buf == nil && in.left >= directMin && !c.discard.Load() && c.roomy():
		got, err := c.nc.Read(in.space())
		if got > 0 {
			in.added(got)
			return nil
		}
		return err
	case in.buf == nil:
		return c.wait()
	}
	if in.r > 0 {
		in.w = copy(in.buf.b, in.buf.b[in.r:in.w])
		in.r = 0
	}
	got, err := c.nc.Read(in.buf.b[in.w:])
	in.w += got
	if got > 0 {
		return nil
	}
	return err
}

// wait waits until there is data, and only then takes a buffer.
func (c *Conn) wait() error {
	if c.rc != nil {
		if err := c.rc.Read(c.readFn); err != nil {
			return err
		}
		return c.in.err
	}
	n, err := c.nc.Read(c.in.one[:])
	if n == 0 {
		return err
	}
	c.in.buf = getBuffer(smallBuffer)
	c.in.buf.b[0] = c.in.one[0]
	c.in.r, c.in.w = 0, 1
	return nil
}

// tryRead is run by RawConn.Read, which waits when it returns false.
func (c *Conn) tryRead(fd uintptr) bool {
	if c.in.parked {
		return c.tryParked(fd)
	}
	b := getBuffer(smallBuffer)
	n, again, err := rawRead(fd, b.b)
	c.in.err = err
	if n == 0 {
		b.put()
		return !again
	}
	c.in.buf, c.in.r, c.in.w = b, 0, n
	return true
}

func (c *Conn) parseAll() error {
	if c.opt.Batch {
		c.Cork()
		defer c.Uncork()
	}
	return c.parse()
}

// parse handles everything it can of the received bytes.
func (c *Conn) parse() error {
	in := &c.in
	for {
		if in.whole {
			c.deliverWhole()
		}
		if c.discard.Load() {
			c.releaseMessage()
		}
		if in.buf == nil {
			return nil
		}
		b := in.buf.b[in.r:in.w]
		if len(b) == 0 {
			in.release()
			return nil
		}
		var more bool
		var err error
		switch {
		case in.broken:
			in.r = in.w
			err = c.discarding(len(b))
		case in.left > 0:
			err = c.payload(b[:min(int64(len(b)), in.left)])
		default:
			more, err = c.frame(b)
		}
		if err != nil || more {
			return err
		}
	}
}

func (c *Conn) deliverWhole() {
	in := &c.in
	in.whole = false
	if !c.discard.Load() {
		var p []byte
		if in.msg != nil {
			p = in.msg.b
		}
		c.h.Message(c, in.text, p)
	}
	c.releaseMessage()
}

// payload handles b, which belongs to the current data frame.
func (c *Conn) payload(b []byte) error {
	in := &c.in
	in.r += len(b)
	if c.discard.Load() {
		in.passed(len(b))
		return c.discarding(len(b))
	}
	for len(b) > 0 {
		if !c.roomy() {
			in.passed(len(b))
			return c.discarding(len(b))
		}
		n := copy(in.space(), b)
		in.added(n)
		b = b[n:]
	}
	return nil
}

// discarding counts n bytes after our close.
func (c *Conn) discarding(n int) error {
	if c.in.discarded += int64(n); c.in.discarded > discardMax {
		return errFinished
	}
	return nil
}

// frame handles the frame that begins with b. more reports that b is not enough.
func (c *Conn) frame(b []byte) (more bool, err error) {
	in := &c.in
	in.buf.src.Reset(b)
	h, err := ws.ReadHeaderBuffer(&in.buf.src, in.buf.hdr[:])
	switch {
	case err == nil:
		state := ws.StateServerSide
		if in.frag {
			state |= ws.StateFragmented
		}
		err = ws.CheckHeader(h, state)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true, nil
	}
	if err != nil {
		c.protocolError(err)
		return false, nil
	}
	n := len(b) - in.buf.src.Len()
	whole := h.Length <= int64(len(b)-n)

	if h.OpCode.IsControl() {
		if !whole {
			return true, nil
		}
		p := b[n : n+int(h.Length)]
		in.r += n + len(p)
		ws.Cipher(p, h.Mask, 0)
		return false, c.controlFrame(h.OpCode, p)
	}

	in.idle = false
	if !c.discard.Load() {
		have := int64(0)
		if in.msg != nil {
			have = int64(len(in.msg.b))
		}
		if in.max > 0 && h.Length > in.max-have {
			c.h.TooBig(c)
			c.shut(CodeTooBig, "message too big", false)
		} else if h.Fin && !in.frag {
			// A frame that fits in the buffer is passed on in place.
			if whole {
				p := b[n : n+int(h.Length)]
				in.r += n + len(p)
				ws.Cipher(p, h.Mask, 0)
				c.h.Message(c, h.OpCode == ws.OpText, p)
				return false, nil
			}
			if h.Length <= int64(len(in.buf.b)-n) {
				return true, nil
			}
		}
	}
	if !in.frag {
		in.text = h.OpCode == ws.OpText
	}
	in.r += n
	in.left, in.mask, in.off, in.fin = h.Length, h.Mask, 0, h.Fin
	in.passed(0)
	return false, nil
}

func (c *Conn) controlFrame(op ws.OpCode, p []byte) error {
	switch op {
	case ws.OpPing:
		c.control(ws.OpPong, append([]byte(nil), p...))
	case ws.OpPong: // its arrival is enough, unless the handler wants to know
		if h, ok := c.h.(Ponger); ok && !c.discard.Load() {
			h.Pong(c)
		}
	case ws.OpClose:
		return c.closeFrame(p)
	}
	return nil
}

// closeFrame answers the peer's close frame with the same code (RFC 6455 §5.5.1), or accepts it as
// the answer to ours.
func (c *Conn) closeFrame(p []byte) error {
	why := CloseError{Code: CodeNoStatus}
	if len(p) > 0 {
		code, reason := ws.ParseCloseFrameData(p)
		if err := checkClose(code, reason); err != nil {
			c.protocolError(err)
			return nil
		}
		why.Code, why.Reason = int(code), reason
		p = append([]byte(nil), p[:2]...)
	}
	c.in.broken = true // nothing may follow it
	c.mu.Lock()
	if c.cause == nil && !c.dead {
		c.cause = why // also if writing has failed and we can't answer
	}
	c.mu.Unlock()
	c.shutWith(p, why, true)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.peerClose = true
	if c.closeSent || c.writeErr != nil {
		return errFinished
	}
	return nil // sentClose will wake the reader
}

// checkClose is ws.CheckCloseFrameData with the codes that were registered after the RFC: 1012
// service restart, 1013 try again later, 1014 bad gateway.
func checkClose(code ws.StatusCode, reason string) error {
	if code >= 1012 && code <= 1014 {
		code = ws.StatusNormalClosure
	}
	return ws.CheckCloseFrameData(code, reason)
}

// protocolError closes with 1002 and ignores all further data.
func (c *Conn) protocolError(err error) {
	c.in.broken = true
	c.shut(CodeProtocolError, err.Error(), false)
}
