// Package devicetest is a scripted server of the device protocol for tests of clients: each connection is played by the
// test itself, frame by frame, over a real WebSocket.
//
//	srv := devicetest.New(t)
//	dev, _ := device.Open(ctx, device.Config{URL: srv.URL, …})
//	conn := srv.Accept(nil)                    // hello, ready
//	text := devicetest.Expect[*frame.Text](conn)
//	conn.Send(&frame.Accepted{ID: text.ID})
//
// What the client sends goes through frame.DecodeUp: a frame that a real server refuses fails the test.
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

// Patience is how long any verb waits before it fails the test.
const Patience = 10 * time.Second

// Server is a listening server. Make it with New.
type Server struct {
	URL string // ws://127.0.0.1:port/ws

	t     testing.TB
	conns chan *Conn
	http  *httptest.Server

	mu      sync.Mutex
	refuse  []func(http.ResponseWriter, *http.Request)
	handler http.Handler
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{t: t, conns: make(chan *Conn, 64)}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = "ws" + strings.TrimPrefix(s.http.URL, "http") + "/ws"
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and its connections; New has the test do it.
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

// Refuse answers the next upgrade with h instead; several queue up.
func (s *Server) Refuse(h func(http.ResponseWriter, *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = append(s.refuse, h)
}

// Handle serves every path but /ws, for links to files.
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
	c.ctx, c.cancel = context.WithCancel(context.Background())
	s.conns <- c
	c.read()
}

// Next waits for the next connection; its hello was not read yet.
func (s *Server) Next() *Conn {
	s.t.Helper()
	select {
	case c := <-s.conns:
		s.t.Cleanup(c.Drop)
		return c
	case <-time.After(Patience):
		s.t.Fatal("devicetest: no connection came")
		return nil
	}
}

// None fails the test when a connection comes within the time.
func (s *Server) None(d time.Duration) {
	s.t.Helper()
	select {
	case <-s.conns:
		s.t.Fatal("devicetest: a connection came that should not")
	case <-time.After(d):
	}
}

// Accept waits for the next connection and its hello, and answers ready: the given one, or for nil that of an ordinary
// server with everything on.
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

// Ready is what an ordinary server answers to a hello: approved, everything on, nothing to replay.
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

// Conn is the server's end of one connection, in the hands of the test.
type Conn struct {
	Hello *frame.Hello // after Accept

	t      testing.TB
	ws     *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	up     chan frame.Up
	gone   chan struct{}
	err    error // after gone: why reading ended

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
		if odd != "" { // it was no message that a broken connection cut short
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

// Expect waits for the next frame of the client, acks left out, and fails the test when it is of another type.
func Expect[T frame.Up](c *Conn) T {
	c.t.Helper()
	f := c.Read()
	want, ok := f.(T)
	if !ok {
		c.t.Fatalf("devicetest: the client sent %T %s, not %T", f, frame.EncodeUp(f), want)
	}
	return want
}

// Read waits for the next frame of the client, acks left out.
func (c *Conn) Read() frame.Up {
	c.t.Helper()
	select {
	case f := <-c.up:
		return f
	case <-c.gone:
		select { // what came before the end counts
		case f := <-c.up:
			return f
		default:
		}
		c.t.Fatalf("devicetest: the client left: %v", c.err)
	case <-time.After(Patience):
		c.t.Fatal("devicetest: no frame came")
	}
	return nil
}

// Silent fails the test when a frame, not counting acks, comes within the time.
func (c *Conn) Silent(d time.Duration) {
	c.t.Helper()
	select {
	case f := <-c.up:
		c.t.Fatalf("devicetest: the client sent %T %s", f, frame.EncodeUp(f))
	case <-time.After(d):
	}
}

// Acks returns the acks that came so far.
func (c *Conn) Acks() []frame.Ack {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]frame.Ack(nil), c.acks...)
}

// Send writes frames to the client. It fails the test only when the connection should still be there.
func (c *Conn) Send(frames ...frame.Down) {
	c.t.Helper()
	for _, f := range frames {
		c.SendRaw(string(frame.EncodeDown(f)))
	}
}

// SendRaw writes one text message.
func (c *Conn) SendRaw(s string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, Patience)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, []byte(s)); err != nil {
		c.t.Fatal(fmt.Errorf("devicetest: %w", err))
	}
}

// Close closes the connection with a code and waits until it is closed.
func (c *Conn) Close(code frame.CloseCode, reason string) {
	c.ws.Close(websocket.StatusCode(code), reason)
	<-c.gone
}

// Drop breaks the connection without a word.
func (c *Conn) Drop() {
	c.cancel()
	c.ws.CloseNow()
	<-c.gone
}

// Left reports whether the client has left.
func (c *Conn) Left() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Gone waits until the client has left, and returns the close code, -1 where there was none.
func (c *Conn) Gone() frame.CloseCode {
	c.t.Helper()
	select {
	case <-c.gone:
		return frame.CloseCode(websocket.CloseStatus(c.err))
	case <-time.After(Patience):
		c.t.Fatal("devicetest: the client did not leave")
		return 0
	}
}
