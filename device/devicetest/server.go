// Package devicetest provides a scripted server of the device protocol for tests of clients. The
// test itself plays the server on each connection, frame by frame, over a real WebSocket.
//
//	srv := devicetest.New(t)
//	dev, err := device.Open(t.Context(), device.Config{URL: srv.URL, …})
//	conn := srv.Accept(nil)                    // hello, ready
//	text := devicetest.Expect[*frame.Text](conn)
//	conn.Send(&frame.Accepted{ID: text.ID})
//
// All frames of the client go through [frame.DecodeUp], so a frame that a real server rejects fails
// the test. It is a package for tests: it has no compatibility promise beyond that of package
// device.
package devicetest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// Timeout is how long a method waits for the client before it fails the test.
const Timeout = 10 * time.Second

// Server is a running server. [New] starts it. Its methods are safe for concurrent use, except
// those that fail the test: call them from the goroutine of the test.
type Server struct {
	URL string // ws://127.0.0.1:port/ws

	t     testing.TB
	conns chan *Conn
	http  *httptest.Server

	mu      sync.Mutex
	refuse  []func(http.ResponseWriter, *http.Request)
	handler http.Handler
}

// New starts a server on the loopback interface. It ends with the test.
func New(t testing.TB) *Server {
	s := &Server{t: t, conns: make(chan *Conn, 64)}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = "ws" + strings.TrimPrefix(s.http.URL, "http") + "/ws"
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and the connections that nobody took. New registers it with the test.
func (s *Server) Close() {
	for {
		select {
		case c := <-s.conns:
			c.Drop()
			continue
		default:
		}
		break
	}
	s.http.Close()
}

// Refuse answers the next upgrade with h instead of accepting it. Several calls queue up.
func (s *Server) Refuse(h func(http.ResponseWriter, *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = append(s.refuse, h)
}

// Handle serves every path except /ws with h, for example links to files.
func (s *Server) Handle(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.handler
	var refuse func(http.ResponseWriter, *http.Request)
	if r.URL.Path == "/ws" && len(s.refuse) > 0 {
		refuse, s.refuse = s.refuse[0], s.refuse[1:]
	}
	s.mu.Unlock()
	switch {
	case refuse != nil:
		refuse(w, r)
		return
	case r.URL.Path != "/ws" && handler != nil:
		handler.ServeHTTP(w, r)
		return
	case r.URL.Path != "/ws":
		http.NotFound(w, r)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(frame.MaxFrame)
	c := &Conn{t: s.t, ws: ws, up: make(chan frame.Up, 4096), gone: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	s.conns <- c
	c.read()
}

// Next returns the next connection, before its hello. It fails the test after [Timeout].
func (s *Server) Next() *Conn {
	s.t.Helper()
	select {
	case c := <-s.conns:
		s.t.Cleanup(c.Drop)
		return c
	case <-time.After(Timeout):
		s.t.Fatal("devicetest: the client did not connect")
		return nil
	}
}

// None fails the test when the client connects within d.
func (s *Server) None(d time.Duration) {
	s.t.Helper()
	select {
	case <-s.conns:
		s.t.Fatal("devicetest: the client connected unexpectedly")
	case <-time.After(d):
	}
}

// Accept waits for the next connection and its hello, and answers with ready. Nil stands for the
// answer of [Ready].
func (s *Server) Accept(ready *frame.Ready) *Conn {
	s.t.Helper()
	c := s.Next()
	c.Hello = Expect[*frame.Hello](c)
	if ready == nil {
		ready = Ready(c.Hello)
	}
	c.Send(ready)
	return c
}

// Ready returns the answer of an ordinary server to a hello: the device is approved, all
// capabilities are on, and no frames follow.
func Ready(h *frame.Hello) *frame.Ready {
	r := &frame.Ready{
		Session: frame.SessionPrefix + h.Device.ID, Protocol: frame.Protocol, Server: "hermes-mobile/test", Approved: true,
		Agent: frame.Online, Resume: frame.Span{Epoch: "e1", From: 1},
		Capabilities: frame.Capabilities{
			Text: true, Audio: true, Media: true, Prompt: true, Edit: true, Typing: true, Avatar: true, Deliver: true,
			Resume: true, Accepted: true, Stop: true, Delta: true, Tool: true, MediaURL: true,
			MaxMediaBytes: frame.MaxMedia, MaxFrameBytes: frame.MaxFrame, ChunkBytes: frame.ChunkBytes,
			MaxParts: frame.MaxParts, MinChunkBytes: frame.MinChunk, MaxUploads: frame.MaxUploads, PromptSeconds: frame.PromptSeconds,
		},
	}
	if h.Resume != nil && h.Resume.Epoch == "e1" {
		r.Resume = frame.Span{Epoch: "e1", From: h.Resume.Seq + 1, To: h.Resume.Seq}
	}
	return r
}

// Conn is the server's end of one connection.
type Conn struct {
	Hello *frame.Hello // set by Accept

	t      testing.TB
	ws     *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	up     chan frame.Up
	gone   chan struct{}
	err    error // valid after gone: why reading ended

	mu   sync.Mutex
	acks []frame.Ack
}

func (c *Conn) read() {
	defer close(c.gone)
	odd := ""
	for {
		typ, data, err := c.ws.Read(c.ctx)
		if err != nil {
			c.err = err
			return
		}
		if odd != "" { // another message follows, so a broken connection did not cut it short
			c.t.Errorf("devicetest: the client sent %s", odd)
			odd = ""
		}
		if typ != websocket.MessageText {
			c.t.Errorf("devicetest: the client sent a binary message")
			continue
		}
		f, err := frame.DecodeUp(data)
		if err != nil {
			odd = fmt.Sprintf("%.200q: %v", data, err)
			continue
		}
		if a, ok := f.(*frame.Ack); ok {
			c.mu.Lock()
			c.acks = append(c.acks, *a)
			c.mu.Unlock()
			continue
		}
		c.up <- f
	}
}

// Expect returns the next frame of the client except acks, and fails the test for another type.
func Expect[T frame.Up](c *Conn) T {
	c.t.Helper()
	f := c.Read()
	want, ok := f.(T)
	if !ok {
		c.t.Fatalf("devicetest: the client sent %T %s, not %T", f, frame.EncodeUp(f), want)
	}
	return want
}

// Read returns the next frame of the client except acks. It fails the test after [Timeout], and
// when the client left.
func (c *Conn) Read() frame.Up {
	c.t.Helper()
	select {
	case f := <-c.up:
		return f
	case <-c.gone:
		select { // a frame before the end counts
		case f := <-c.up:
			return f
		default:
		}
		c.t.Fatalf("devicetest: the client left: %v", c.err)
	case <-time.After(Timeout):
		c.t.Fatal("devicetest: the client sent nothing")
	}
	return nil
}

// Silent fails the test when the client sends a frame other than an ack within d.
func (c *Conn) Silent(d time.Duration) {
	c.t.Helper()
	select {
	case f := <-c.up:
		c.t.Fatalf("devicetest: the client sent %T %s", f, frame.EncodeUp(f))
	case <-time.After(d):
	}
}

// Acks returns all acks so far.
func (c *Conn) Acks() []frame.Ack {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]frame.Ack(nil), c.acks...)
}

// Send writes frames to the client. It fails the test when writing fails.
func (c *Conn) Send(frames ...frame.Down) {
	c.t.Helper()
	for _, f := range frames {
		c.SendRaw(string(frame.EncodeDown(f)))
	}
}

// SendRaw writes one text message to the client. It fails the test when writing fails.
func (c *Conn) SendRaw(s string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, Timeout)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, []byte(s)); err != nil {
		c.t.Fatal(fmt.Errorf("devicetest: %w", err))
	}
}

// Close closes the connection with a code, and waits until it is closed.
func (c *Conn) Close(code frame.CloseCode, reason string) {
	_ = c.ws.Close(websocket.StatusCode(code), reason) // the device may have closed it first
	<-c.gone
}

// Drop breaks the connection without a close frame.
func (c *Conn) Drop() {
	c.cancel()
	_ = c.ws.CloseNow()
	<-c.gone
}

// Left reports whether the client left.
func (c *Conn) Left() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Gone waits until the client left, and returns its close code, -1 where there was none.
func (c *Conn) Gone() frame.CloseCode {
	c.t.Helper()
	select {
	case <-c.gone:
		return frame.CloseCode(websocket.CloseStatus(c.err))
	case <-time.After(Timeout):
		c.t.Fatal("devicetest: the client did not leave")
		return 0
	}
}
