package hub_test

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
)

// client is a device at the other end of a real WebSocket, spoken by another library than the server's.
type client struct {
	w  *world
	id string
	ws *websocket.Conn
	tr *http.Transport

	mu     sync.Mutex
	frames []frame.Down
	end    error // why reading ended
	ended  bool
	news   chan struct{}

	gate chan struct{} // nil: reads at once; else reads after it was closed

	Ready  *frame.Ready
	secret string // the token by which the device comes back
	calls  int
}

type dialing struct {
	hello *frame.Hello
	slow  bool
}

type option func(*dialing)

func withToken(tok string) option { return func(d *dialing) { d.hello.Token = tok } }
func withUser(id string) option   { return func(d *dialing) { d.hello.User = frame.User{ID: id} } }
func withDelta() option {
	return func(d *dialing) { d.hello.Accept = append(d.hello.Accept, frame.AcceptDelta, frame.AcceptTool) }
}
func withResume(epoch string, seq int64) option {
	return func(d *dialing) { d.hello.Resume = &frame.Cursor{Epoch: epoch, Seq: seq} }
}

// withNotices shows notices of new devices.
func withNotices() option {
	return func(d *dialing) { d.hello.Accept = append(d.hello.Accept, frame.AcceptNotice) }
}

// withPair redeems a one-time code instead of a token.
func withPair(code string) option {
	return func(d *dialing) { d.hello.Token, d.hello.Pair = "", code }
}

// invite makes a pairing code.
func (w *world) invite(c access.PairingCode) string {
	w.t.Helper()
	code, _, _, err := w.hub.Owner().Invite(ctx, c, time.Minute)
	ok(w.t, err)
	return code
}

// slow reads nothing until startReading, with small buffers in the kernel.
func slow() option { return func(d *dialing) { d.slow = true } }

// open connects and says hello, without waiting for the answer.
func (w *world) open(id string, opts ...option) *client {
	w.t.Helper()
	d := &dialing{hello: &frame.Hello{Token: token, Device: frame.Device{ID: id}}}
	for _, o := range opts {
		o(d)
	}
	c := w.socket(d.slow)
	c.id, c.secret = id, d.hello.Token
	c.send(d.hello)
	return c
}

// socket connects and says nothing.
func (w *world) socket(slow bool) *client {
	w.t.Helper()
	c := &client{w: w, news: make(chan struct{}, 1)}
	dialer := net.Dialer{}
	if slow {
		c.gate = make(chan struct{})
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			var err error
			ctlErr := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10) })
			return errors.Join(err, ctlErr)
		}
	}
	c.tr = &http.Transport{DialContext: dialer.DialContext}
	ws, resp, err := websocket.Dial(ctx, strings.Replace(w.server.URL, "http", "ws", 1), &websocket.DialOptions{HTTPClient: &http.Client{Transport: c.tr}})
	ok(w.t, err)
	_ = resp
	c.ws = ws
	ws.SetReadLimit(64 << 20)
	done := make(chan struct{})
	go func() { defer close(done); c.read() }()
	w.t.Cleanup(func() {
		c.startReading()
		_ = ws.CloseNow()
		<-done
		c.tr.CloseIdleConnections()
	})
	return c
}

// connect is open with the ready that must follow.
func (w *world) connect(id string, opts ...option) *client {
	w.t.Helper()
	c := w.open(id, opts...)
	if c.gate == nil {
		c.Ready = expect[*frame.Ready](c)
		c.secret = cmp.Or(c.Ready.Token, c.secret)
	}
	return c
}

// startReading lets a slow client read.
func (c *client) startReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate != nil {
		select {
		case <-c.gate:
		default:
			close(c.gate)
		}
	}
}

func (c *client) read() {
	if c.gate != nil {
		<-c.gate
	}
	for {
		_, data, err := c.ws.Read(ctx)
		var f frame.Down
		if err == nil {
			f, err = frame.DecodeDown(data)
		}
		c.mu.Lock()
		if err != nil {
			c.end, c.ended = err, true
		} else {
			c.frames = append(c.frames, f)
		}
		c.mu.Unlock()
		select {
		case c.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// pop returns the next frame; ok is false when there is none yet.
func (c *client) pop() (f frame.Down, err error, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.frames) > 0 {
		f = c.frames[0]
		c.frames = c.frames[1:]
		return f, nil, true
	}
	return nil, c.end, c.ended
}

// any is the next frame, whatever it is; an error when the connection ended.
func (c *client) any() (frame.Down, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		if f, err, ok := c.pop(); ok {
			return f, err
		}
		select {
		case <-c.news:
		case <-timer.C:
			return nil, errors.New("no frame came in time")
		}
	}
}

// indicator reports whether a frame only shows what the agent does, which most tests pass over.
func indicator(f frame.Down) bool {
	switch f.(type) {
	case *frame.Typing, *frame.Avatar:
		return true
	}
	return false
}

// expect is the next frame that is no indicator, which must have this type.
func expect[T frame.Down](c *client) T {
	c.w.t.Helper()
	for {
		f, err := c.any()
		if err != nil {
			c.w.t.Fatalf("device %s waited for %v: %v", c.id, reflect.TypeFor[T](), err)
		}
		if got, is := f.(T); is {
			return got
		}
		if !indicator(f) {
			c.w.t.Fatalf("device %s got %s, waited for %v", c.id, show(f), reflect.TypeFor[T]())
		}
	}
}

// find passes over all frames until one of this type fits.
func find[T frame.Down](c *client, fits func(T) bool) T {
	c.w.t.Helper()
	for {
		f, err := c.any()
		if err != nil {
			c.w.t.Fatalf("device %s looked for %v: %v", c.id, reflect.TypeFor[T](), err)
		}
		if got, is := f.(T); is && (fits == nil || fits(got)) {
			return got
		}
	}
}

func show(f frame.Down) string { return string(frame.EncodeDown(f)) }

func (c *client) send(f frame.Up) {
	c.w.t.Helper()
	ok(c.w.t, c.write(f))
}

// write is send for a connection that may be gone.
func (c *client) write(f frame.Up) error {
	return c.ws.Write(ctx, websocket.MessageText, frame.EncodeUp(f))
}

// text sends a message and waits for its receipt.
func (c *client) text(id, text string) *frame.Accepted {
	c.w.t.Helper()
	c.send(&frame.Text{ID: id, Text: text})
	a := expect[*frame.Accepted](c)
	if a.ID != id {
		c.w.t.Fatalf("receipt %s for %s", show(a), id)
	}
	return a
}

// sync makes a round trip through the session's queue and returns what came before its answer.
func (c *client) sync() []frame.Down {
	c.w.t.Helper()
	c.calls++
	id := fmt.Sprint("sync-", c.calls)
	c.send(&frame.Call{ID: id, Method: "no.such.method", Params: []byte("{}")})
	var list []frame.Down
	for {
		f, err := c.any()
		if err != nil {
			c.w.t.Fatalf("device %s made a round trip: %v", c.id, err)
		}
		if r, is := f.(*frame.Result); is && r.ID == id {
			return list
		}
		list = append(list, f)
	}
}

// quiet fails when anything but indicators came since.
func (c *client) quiet() {
	c.w.t.Helper()
	for _, f := range c.sync() {
		if !indicator(f) {
			c.w.t.Fatalf("device %s got %s, want nothing", c.id, show(f))
		}
	}
}

// message is the next whole or final message, past steps of it.
func (c *client) message() *frame.Message {
	c.w.t.Helper()
	for {
		if m := expect[*frame.Message](c); m.Final {
			return m
		}
	}
}

// closed waits for the end and returns its close code, -1 when there was none. Frames before it are passed over.
func (c *client) closed() int {
	c.w.t.Helper()
	for {
		f, err := c.any()
		if f != nil {
			continue
		}
		c.mu.Lock()
		ended := c.ended
		c.mu.Unlock()
		if !ended {
			c.w.t.Fatalf("device %s waited for the close: %v", c.id, err)
		}
		return int(websocket.CloseStatus(err))
	}
}

// refusal is the error and the close code that a hello is answered with.
func (c *client) refusal() (frame.Code, int) {
	c.w.t.Helper()
	e := expect[*frame.Error](c)
	return e.Code, c.closed()
}

// drop ends the connection without a word, and waits until the server has noticed.
func (c *client) drop() {
	c.w.t.Helper()
	before := c.w.hub.Connections()
	_ = c.ws.CloseNow()
	until(c.w.t, "the server to notice that a device is gone", func() bool { return c.w.hub.Connections() < before })
}
