package server

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// firstByteTimeout is how long a new connection may be silent.
const firstByteTimeout = 10 * time.Second

// handshake is the first byte of a TLS connection.
const handshake = 0x16

// onePort is a listener for TLS and plain connections on one port. It returns a connection that
// begins with a TLS handshake as a *tls.Conn, and any other as it is. A silent connection holds up
// no other.
type onePort struct {
	net.Listener
	config  *tls.Config
	timeout time.Duration

	ready chan accepted
	done  chan struct{}
	once  sync.Once
	work  sync.WaitGroup

	mu     sync.Mutex
	silent map[net.Conn]struct{} // that have sent nothing yet; nil: closed
}

type accepted struct {
	conn net.Conn
	err  error
}

func newOnePort(l net.Listener, config *tls.Config, timeout time.Duration) *onePort {
	o := &onePort{Listener: l, config: config, timeout: timeout, ready: make(chan accepted), done: make(chan struct{}), silent: map[net.Conn]struct{}{}}
	o.work.Go(o.accept)
	return o
}

// Accept returns the next connection that has sent something.
func (o *onePort) Accept() (net.Conn, error) {
	select {
	case a := <-o.ready:
		return a.conn, a.err
	case <-o.done:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and its silent connections, and waits for its goroutines.
func (o *onePort) Close() error {
	err := net.ErrClosed
	o.once.Do(func() {
		close(o.done)
		err = o.Listener.Close()
		o.mu.Lock()
		for c := range o.silent {
			_ = c.Close()
		}
		o.silent = nil
		o.mu.Unlock()
		o.work.Wait()
	})
	return err
}

func (o *onePort) accept() {
	for {
		c, err := o.Listener.Accept()
		if err == nil {
			o.work.Go(func() { o.detect(c) })
			continue
		}
		// The HTTP server knows which errors are temporary. It waits a little before it accepts
		// again.
		if !o.deliver(accepted{err: err}) || errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// detect waits for the first byte of a connection and delivers the connection by its protocol.
func (o *onePort) detect(c net.Conn) {
	o.mu.Lock()
	if o.silent == nil {
		o.mu.Unlock()
		_ = c.Close()
		return
	}
	o.silent[c] = struct{}{}
	o.mu.Unlock()

	first := make([]byte, 1)
	_ = c.SetReadDeadline(time.Now().Add(o.timeout))
	n, _ := c.Read(first)

	o.mu.Lock()
	delete(o.silent, c)
	o.mu.Unlock()
	if n == 0 {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	out := net.Conn(&begun{Conn: c, first: first})
	if first[0] == handshake {
		out = tls.Server(out, o.config)
	}
	if !o.deliver(accepted{conn: out}) {
		_ = c.Close()
	}
}

// deliver gives a connection to Accept. It reports false if the listener was closed.
func (o *onePort) deliver(a accepted) bool {
	select {
	case o.ready <- a:
		return true
	case <-o.done:
		return false
	}
}

// begun is a connection whose first byte was already read.
type begun struct {
	net.Conn
	first []byte
}

// Read returns the first byte, then what follows.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 || len(p) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.first)
	b.first = nil
	return n, nil
}

// NetConn returns the underlying connection.
func (b *begun) NetConn() net.Conn { return b.Conn }

// SyscallConn returns the socket, which lets an idle WebSocket wait without a buffer. It fails
// until the first byte was read.
func (b *begun) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := b.Conn.(syscall.Conn); ok && len(b.first) == 0 {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
