package strangers

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// Conn is an accepted connection.
type Conn struct {
	*net.TCPConn
	l        *Listener
	stranger atomic.Pointer[Stranger] // nil: admitted for good
	closed   atomic.Bool
}

// Read counts what a stranger sends.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if s := c.stranger.Load(); s != nil && n > 0 {
		s.sent(n)
	}
	return n, err
}

// Close closes the connection and gives its place to another.
func (c *Conn) Close() error {
	err := c.TCPConn.Close()
	if c.closed.Swap(true) {
		return err
	}
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if s := c.stranger.Load(); s != nil {
		s.gone = true
		l.unlink(s)
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return err
}

// Stranger is a connection that may have to go. A nil Stranger is a connection that no Listener of
// this package accepted, and can do everything. Everything below conn is guarded by the Listener.
type Stranger struct {
	conn *Conn
	peer netip.Addr

	client   netip.Addr // whom it counts for: the peer, or who is behind it
	since    time.Time  // what it is as old as
	bytes    int64
	admitted bool // by the request that is being answered
	hijacked bool
	gone     bool // closed

	inAll, inNetwork *list.Element
	network          netip.Prefix
	ofNetwork        *list.List
}

func (s *Stranger) cost() int64 { return perStranger + s.bytes }

// sent counts bytes toward the memory budget.
func (s *Stranger) sent(n int) {
	l := s.conn.l
	l.mu.Lock()
	more := min(int64(n), maxCounted-s.bytes)
	if s.inAll == nil || more <= 0 {
		l.mu.Unlock()
		return
	}
	s.bytes += more
	l.bytes += more
	out := l.shrink()
	l.tell()
	l.mu.Unlock()
	l.drop(time.Now(), out...)
}

// Admit says that the peer has authenticated: it is not dropped any more, a WebSocket for good, a
// request until it is answered.
func (s *Stranger) Admit() {
	if s == nil {
		return
	}
	l := s.conn.l
	l.mu.Lock()
	defer l.mu.Unlock()
	s.admitted = true
	l.unlink(s)
	if s.hijacked {
		s.conn.stranger.Store(nil)
	}
}

// begins notes that a request of a client came whole.
func (s *Stranger) begins(client netip.Addr) { s.next(client, false) }

// idles notes that a request was answered.
func (s *Stranger) idles() { s.next(s.peer, true) }

// next is the next request of a connection, or the wait for it. A connection of a proxy is as old
// as what it does now, since each time it does it for another client. Every other one is as old as
// it is: with a request now and then it would stay young at the cost of those who come anew.
func (s *Stranger) next(client netip.Addr, idle bool) {
	l, now := s.conn.l, time.Now()
	l.mu.Lock()
	if s.gone {
		l.mu.Unlock()
		return
	}
	linked := s.inAll != nil
	if idle {
		if linked {
			l.bytes -= s.bytes
		}
		s.bytes, s.admitted = 0, false
	}
	var out []dropped
	if _, own := l.networkOf(s.peer); !linked || !own {
		l.unlink(s)
		s.since = now
		out = l.link(s, client)
	}
	l.tell()
	l.mu.Unlock()
	l.drop(now, out...)
}

// hijack notes that the connection is taken from the HTTP server.
func (s *Stranger) hijack() {
	l := s.conn.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.hijacked = true; s.admitted {
		s.conn.stranger.Store(nil)
	}
}

type key struct{}

// Of returns the connection that a request came by, nil where no Listener of this package has
// accepted it.
func Of(ctx context.Context) *Stranger {
	s, _ := ctx.Value(key{}).(*Stranger)
	return s
}

// Admit is Of(ctx).Admit, for a request whose credentials are right.
func Admit(ctx context.Context) { Of(ctx).Admit() }

// Watch has an HTTP server tell the Listener how its connections are. client says from which
// address a request comes, which behind a proxy is not that of the peer.
func (l *Listener) Watch(s *http.Server, client func(*http.Request) netip.Addr) {
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := Of(r.Context()); s != nil {
			s.begins(client(r))
		}
		next.ServeHTTP(w, r)
	})
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if c := under(c); c != nil {
			return context.WithValue(ctx, key{}, c.stranger.Load())
		}
		return ctx
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		c := under(nc)
		if c == nil {
			return
		}
		switch s := c.stranger.Load(); {
		case s == nil:
		case state == http.StateIdle:
			s.idles()
		case state == http.StateHijacked:
			s.hijack()
		}
	}
}

// under returns the Conn below TLS and whatever else was put around it.
func under(c net.Conn) *Conn {
	for {
		switch x := c.(type) {
		case *Conn:
			return x
		case interface{ NetConn() net.Conn }:
			c = x.NetConn()
		default:
			return nil
		}
	}
}
