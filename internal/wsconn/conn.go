package wsconn

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

const (
	// closeWait is how long a closing connection waits for progress: of its own queue, and then for
	// the peer's close frame.
	closeWait = 5 * time.Second
	// closeExtensions is how many times closeWait is extended because the peer still reads what was
	// queued before the close frame.
	closeExtensions = 5
	// afterWriteError is how long reading continues after a failed write. The peer has usually sent
	// a close frame before it left.
	afterWriteError = time.Second
)

// Conn is the server's side of one WebSocket. It is safe for concurrent use. No method waits for
// the peer, except where its comment says so.
//
// Every Conn that Upgrade returns must be passed to Serve or closed.
type Conn struct {
	nc  net.Conn
	rc  syscall.RawConn // nil: nc is used as a stream
	opt *Options

	// Bound once, because a method value is an allocation.
	readFn, writeFn func(fd uintptr) bool

	in      reader        // of the reading goroutine only
	seen    atomic.Uint32 // Keeper's tick of the last traffic, see Keeper
	discard atomic.Bool   // drop everything from the peer
	slot    keeperSlot    // guarded by the Keeper's lock

	mu       sync.Mutex
	h        Handler // nil until Serve
	out      queue
	inFlight int   // bytes taken from out that a stream write has not finished
	writing  bool  // somebody has the duty to write the queue
	reading  bool  // the reading goroutine runs
	writers  int32 // running writing goroutines
	above    bool  // the queue was above LowWater, Drained is due
	resting  bool  // the reading goroutine is parked, or was told to park
	lost     int   // bytes that were dropped unwritten
	corked   int   // calls of Cork without an Uncork

	closing   bool // no more Send
	closeSent bool // our close frame is written
	peerClose bool // the peer's close frame was read
	dead      bool // the socket is closed or being closed
	ended     bool // Handler.Closed has returned

	extended  uint8         // how often closeWait was extended
	closeLeft int           // waiting bytes at the last extension
	cause     error         // the error for Closed
	writeErr  error         // why writing failed
	done      chan struct{} // created on demand
}

func newConn(nc net.Conn, first []byte, o *Options) *Conn {
	c := &Conn{nc: nc, rc: rawConn(nc), opt: o}
	c.in.first = first
	c.in.max = o.MaxMessage
	if c.rc != nil {
		c.readFn, c.writeFn = c.tryRead, c.tryWrite
	}
	return c
}

// Serve starts reading and returns at once, so the HTTP handler can return and its stack and
// buffers are freed. It may be called once. Handler describes the calls of h. On a connection that
// is already closed, Serve calls only h.Closed.
func (c *Conn) Serve(h Handler) {
	c.mu.Lock()
	switch c.h.(type) {
	case nil:
	case nobody: // Close came first
		c.mu.Unlock()
		go func() {
			<-c.Done()
			h.Closed(c, c.cause)
		}()
		return
	default:
		c.mu.Unlock()
		panic("wsconn: Serve called twice")
	}
	c.h, c.reading = h, true
	if c.drained() {
		c.startWriter(func() { h.Drained(c) })
	}
	c.mu.Unlock()
	c.opt.Keeper.add(c)
	go c.read()
}

// nobody is the handler of a connection that is closed before Serve.
type nobody struct{}

func (nobody) Message(*Conn, bool, []byte) {}
func (nobody) TooBig(*Conn)                {}
func (nobody) Drained(*Conn)               {}
func (nobody) Closed(*Conn, error)         {}

// SetMaxMessage changes Options.MaxMessage, for instance after the peer has authenticated. Call it
// only before Serve and from Handler.Message. It applies to frames that have not begun yet.
func (c *Conn) SetMaxMessage(n int64) { c.in.max = n }

// RemoteAddr returns the address of the peer's end of the socket.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Send queues p as one text message. It never waits: the caller writes what the socket accepts at
// once, and a goroutine writes the rest. Messages are written in the order of the calls. Send keeps
// the slice: don't change it afterwards. It may be sent to many connections.
//
// Send returns ErrFull, or ErrClosed once the connection is closing. Nil means that the message is
// queued, not that the peer has it.
func (c *Conn) Send(p []byte) error {
	f := outFrame{p: p, op: ws.OpText}
	c.mu.Lock()
	if c.closing || c.dead {
		c.mu.Unlock()
		return ErrClosed
	}
	if waiting := c.out.size + c.inFlight; waiting > 0 && c.opt.MaxQueue > 0 && waiting+f.size() > c.opt.MaxQueue {
		c.mu.Unlock()
		return ErrFull
	}
	c.out.push(f)
	c.write()
	return nil
}

// Compose sends what fill appends to a slice of about size bytes. If the message is written at
// once, the slice is reused, so a message to a single peer leaves no garbage. fill must not keep
// the slice.
func (c *Conn) Compose(size int, fill func(b []byte) []byte) error {
	c.mu.Lock()
	waits := c.out.size+c.inFlight > 0 || c.corked > 0
	c.mu.Unlock()
	if waits { // a small message must not occupy a large buffer meanwhile
		return c.Send(fill(make([]byte, 0, size)))
	}
	b := getBuffer(size)
	err := c.Send(fill(b.b[:0]))
	if c.Queued() == 0 {
		b.put()
	}
	return err
}

// Cork delays writes until Uncork, so several messages need one write. Calls nest. Keep the time
// between them short. Send's limits still apply.
func (c *Conn) Cork() {
	c.mu.Lock()
	c.corked++
	c.mu.Unlock()
}

// Uncork ends the delay and writes the queue, as Send does.
func (c *Conn) Uncork() {
	c.mu.Lock()
	if c.corked--; c.corked > 0 || c.out.size == 0 {
		c.mu.Unlock()
		return
	}
	c.write()
}

// Ping sends a ping without payload, ahead of waiting messages. The Keeper does this for every
// connection.
func (c *Conn) Ping() { c.control(ws.OpPing, nil) }

func (c *Conn) control(op ws.OpCode, p []byte) {
	c.mu.Lock()
	if c.closing || c.dead {
		c.mu.Unlock()
		return
	}
	c.out.control(outFrame{p: p, op: op})
	c.write()
}

// Queued returns how many bytes wait to be written, including frame headers.
func (c *Conn) Queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.size + c.inFlight
}

// Lost returns how many bytes were dropped unwritten when the connection ended, including frame
// headers.
func (c *Conn) Lost() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Close starts the close handshake (RFC 6455 §7.1.2): it writes the queue, then the close frame,
// then gives the peer some seconds to answer with its own. It drops what the peer sends meanwhile.
// It cuts off a peer that does nothing after five seconds, and one that still reads the queue after
// thirty at most. Only the first of Close, Abort and CloseNow counts.
//
// The reason is cut to 123 bytes. With CodeNoStatus or 0 the frame has neither code nor reason.
// Close also works on a connection that was never passed to Serve.
func (c *Conn) Close(code int, reason string) { c.shut(code, reason, false) }

// Abort is Close for a peer that is too slow or no longer allowed: it drops messages that it hasn't
// begun to write.
func (c *Conn) Abort(code int, reason string) { c.shut(code, reason, true) }

// CloseNow closes the socket without a close frame and drops the queue.
func (c *Conn) CloseNow() { c.kill(ErrClosed, abrupt) }

// Done returns a channel that is closed when Handler.Closed has returned. For a connection that was
// never served, it is closed with the socket.
func (c *Conn) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.ended {
			close(c.done)
		}
	}
	return c.done
}

func (c *Conn) shut(code int, reason string, drop bool) {
	for len(reason) > ws.MaxControlFramePayloadSize-2 {
		_, n := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-n]
	}
	if code == 0 {
		code = CodeNoStatus
	}
	var body []byte
	if code != CodeNoStatus {
		body = ws.NewCloseFrameBody(ws.StatusCode(code), reason)
	}
	c.shutWith(body, CloseError{Code: code, Reason: reason, Local: true}, drop)
}

// shutWith queues the close frame and starts the remaining time.
func (c *Conn) shutWith(body []byte, why CloseError, drop bool) {
	c.mu.Lock()
	if c.closing || c.dead {
		c.mu.Unlock()
		return
	}
	c.closing = true
	c.cause = why
	c.discard.Store(true)
	if drop {
		before := c.out.size
		c.out.drop()
		c.lost += before - c.out.size
	}
	c.out.push(outFrame{p: body, op: ws.OpClose})
	c.closeLeft = c.out.size + c.inFlight
	if c.h == nil {
		c.h, c.reading = nobody{}, true
		go c.read()
	}
	// Under the lock, so it can't come after the past deadline that sent sets when both close
	// frames are through.
	_ = c.nc.SetReadDeadline(time.Now().Add(closeWait))
	c.write()
}

// overdue decides at the read deadline of a closing connection whether the peer gets more time.
func (c *Conn) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.out.size + c.inFlight
	if c.dead || c.closeSent || c.writeErr != nil || left >= c.closeLeft || c.extended >= closeExtensions {
		return true
	}
	c.closeLeft = left
	c.extended++
	_ = c.nc.SetReadDeadline(time.Now().Add(closeWait))
	return false
}

// Ways for kill to close the socket.
type ending uint8

const (
	gentle ending = iota // may wait for the TLS close notification
	abrupt               // never waits
	reset                // and the kernel drops what the peer hasn't read
)

// kill closes the socket and frees the queue. Call it without the lock and not inside a raw read or
// write, because closing a socket waits for those to end.
func (c *Conn) kill(why error, how ending) {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return
	}
	c.dead = true
	if c.cause == nil {
		c.cause = why
	}
	c.lost += c.out.size + c.inFlight
	c.out.reset()
	c.inFlight = 0
	served := c.h != nil
	c.mu.Unlock()
	c.discard.Store(true)

	if tc, ok := c.nc.(interface{ NetConn() net.Conn }); ok && how != gentle {
		hangUp(tc.NetConn(), how)
	}
	hangUp(c.nc, how)
	if !served {
		c.end(nil)
	}
}

func hangUp(nc net.Conn, how ending) {
	if tcp, ok := nc.(interface{ SetLinger(sec int) error }); ok && how == reset {
		_ = tcp.SetLinger(0)
	}
	_ = nc.Close()
}

// readerEnded and writerEnded: the last goroutine to notice the end calls Closed, so no other call
// can come after it.
func (c *Conn) readerEnded() {
	c.mu.Lock()
	c.reading = false
	last := c.writers == 0
	h := c.h
	c.mu.Unlock()
	if last {
		c.end(h)
	}
}

func (c *Conn) writerEnded() {
	c.mu.Lock()
	c.writers--
	last := c.writers == 0 && c.h != nil && !c.reading
	h := c.h
	c.mu.Unlock()
	if last {
		c.end(h)
	}
}

func (c *Conn) end(h Handler) {
	if h != nil {
		h.Closed(c, c.cause) // never written again once dead is set
	}
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		if c.done != nil {
			close(c.done)
		}
	}
	c.mu.Unlock()
}
