package wsconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const patience = 20 * time.Second

// recorder is a Handler that remembers what it was told.
type recorder struct {
	message func(c *Conn, text bool, p []byte) // called besides, may be nil
	tooBig  func(c *Conn)

	mu      sync.Mutex
	got     []string // "t:" or "b:" and the payload
	big     int
	drained int
	closed  []error
	late    bool // something came after Closed
	change  chan struct{}
}

func (r *recorder) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.closed) > 0 {
		r.late = true
	}
	f()
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
}

func (r *recorder) Message(c *Conn, text bool, p []byte) {
	kind := "b:"
	if text {
		kind = "t:"
	}
	r.note(func() { r.got = append(r.got, kind+string(p)) })
	if r.message != nil {
		r.message(c, text, p)
	}
}

func (r *recorder) TooBig(c *Conn) {
	r.note(func() { r.big++ })
	if r.tooBig != nil {
		r.tooBig(c)
	}
}

func (r *recorder) Drained(*Conn) { r.note(func() { r.drained++ }) }

func (r *recorder) Closed(_ *Conn, err error) { r.note(func() { r.closed = append(r.closed, err) }) }

// await waits until ok is true of what was recorded.
func (r *recorder) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		if ok() {
			r.mu.Unlock()
			return
		}
		if r.change == nil {
			r.change = make(chan struct{})
		}
		change := r.change
		r.mu.Unlock()
		select {
		case <-change:
		case <-deadline:
			t.Fatalf("no %s", what)
		}
	}
}

func (r *recorder) awaitMessages(t *testing.T, want ...string) {
	t.Helper()
	r.await(t, fmt.Sprintf("%d messages", len(want)), func() bool { return len(r.got) >= len(want) })
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range want {
		if r.got[i] != w {
			t.Fatalf("message %d is %.80q, want %.80q", i, r.got[i], w)
		}
	}
}

func (r *recorder) awaitClosed(t *testing.T) error {
	t.Helper()
	r.await(t, "Closed", func() bool { return len(r.closed) > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.closed) != 1 || r.late {
		t.Fatalf("Closed %d times, calls after it: %v", len(r.closed), r.late)
	}
	return r.closed[0]
}

func (r *recorder) mustBeOpen(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.closed) > 0 {
		t.Fatalf("closed with %v", r.closed[0])
	}
}

// awaitCondition is for what cannot be waited for otherwise.
func awaitCondition(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// server accepts WebSockets with opt and gives each to the next handler.
type server struct {
	*httptest.Server
	conns chan *Conn
}

// transport is what a server's connections are made of.
type transport int

const (
	raw     transport = iota // TCP, used through its raw socket
	stream                   // TCP that shows nothing but net.Conn
	overTLS                  // TLS
)

var transports = map[string]transport{"raw": raw, "stream": stream, "tls": overTLS}

type streamListener struct{ net.Listener }

func (l streamListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{nc}, nil
}

func newServer(t testing.TB, opt Options, tr transport, h func() Handler) *server {
	s := &server{conns: make(chan *Conn, 10000)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Upgrade(w, r, &opt)
		if err != nil {
			return
		}
		c.Serve(h())
		s.conns <- c
	}))
	switch tr {
	case stream:
		s.Listener = streamListener{s.Listener}
		s.Start()
	case overTLS:
		s.StartTLS()
	default:
		s.Start()
	}
	t.Cleanup(func() {
		s.Close()
		for len(s.conns) > 0 {
			(<-s.conns).CloseNow()
		}
	})
	return s
}

// conn waits for the server's end of the connection dialled last.
func (s *server) conn(t testing.TB) *Conn {
	t.Helper()
	select {
	case c := <-s.conns:
		t.Cleanup(func() {
			c.CloseNow()
			select {
			case <-c.Done():
			case <-time.After(patience):
				t.Error("connection does not end")
			}
		})
		return c
	case <-time.After(patience):
		t.Fatal("no connection")
		return nil
	}
}

// peer is a client that speaks in bytes and frames.
type peer struct {
	net.Conn
	t  testing.TB
	in io.Reader
}

func (s *server) dial(t testing.TB, with ...byte) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(s.URL, "https") {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own server
	}
	_ = nc.SetDeadline(time.Now().Add(3 * patience))
	p := &peer{Conn: nc, t: t, in: nc}
	t.Cleanup(func() { _ = nc.Close() })
	p.send(append([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"+
		"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"), with...))
	var head []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(nc, one); err != nil {
			t.Fatalf("upgrade: %v after %q", err, head)
		}
		if head = append(head, one[0]); len(head) > 4 && string(head[len(head)-4:]) == "\r\n\r\n" {
			break
		}
	}
	if string(head[:12]) != "HTTP/1.1 101" {
		t.Fatalf("upgrade answered %q", head)
	}
	return p
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// masked is a frame as a client sends it.
func masked(op ws.OpCode, fin bool, payload string) []byte {
	f := ws.NewFrame(op, fin, []byte(payload))
	return ws.MustCompileFrame(ws.MaskFrame(f))
}

func text(payload string) []byte { return masked(ws.OpText, true, payload) }

// frame reads the next frame.
func (p *peer) frame() (ws.OpCode, string) {
	p.t.Helper()
	h, err := ws.ReadHeader(p.in)
	if err != nil {
		p.t.Fatalf("reading a frame: %v", err)
	}
	if !h.Fin || h.Masked || h.Rsv != 0 {
		p.t.Fatalf("odd header %+v", h)
	}
	b := make([]byte, h.Length)
	if _, err := io.ReadFull(p.in, b); err != nil {
		p.t.Fatalf("reading a frame of %d: %v", h.Length, err)
	}
	return h.OpCode, string(b)
}

func (p *peer) expect(op ws.OpCode, payload string) {
	p.t.Helper()
	if o, s := p.frame(); o != op || s != payload {
		p.t.Fatalf("got frame %x %.80q, want %x %.80q", o, s, op, payload)
	}
}

func (p *peer) expectClose(code int) {
	p.t.Helper()
	op, s := p.frame()
	if got, _ := ws.ParseCloseFrameData([]byte(s)); op != ws.OpClose || int(got) != code {
		p.t.Fatalf("got frame %x %.80q, want a close with %d", op, s, code)
	}
}

func (p *peer) expectEnd() {
	p.t.Helper()
	if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		p.t.Fatalf("read %d bytes, %v, want the end", n, err)
	}
}

func closeBody(code int, reason string) string {
	return string(ws.NewCloseFrameBody(ws.StatusCode(code), reason))
}

// connect is the usual beginning of a test.
func connect(t *testing.T, opt Options, with ...byte) (*peer, *Conn, *recorder) {
	t.Helper()
	r := &recorder{}
	s := newServer(t, opt, raw, func() Handler { return r })
	p := s.dial(t, with...)
	return p, s.conn(t), r
}

// keep runs a Keeper for the length of the test.
func keep(t testing.TB, interval, limit time.Duration) *Keeper {
	k := NewKeeper(interval, limit)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { k.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return k
}

// readFrame reads one frame that this package wrote.
func readFrame(r io.Reader) (ws.Frame, error) {
	h, err := ws.ReadHeader(r)
	if err != nil {
		return ws.Frame{}, err
	}
	payload := make([]byte, h.Length)
	_, err = io.ReadFull(r, payload)
	return ws.Frame{Header: h, Payload: payload}, err
}
