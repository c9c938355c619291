package hub

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/strangers"
	"hermes-mobile/internal/wsconn"
)

// largeFrame is the size from which a frame counts towards the memory budget (Options.Room).
const largeFrame = 64 << 10

// reader is the receiving side of one connection of a device, or of a sender of deliveries. Its
// fields belong to the reading goroutine, except where they say otherwise.
type reader struct {
	conn
	hub     *Hub
	device  *device // after hello
	sender  *sender // of a connection with a delivery token; it receives no messages
	claimed string  // device id of the hello; written before token is
	guest   *guest  // until the connection has authenticated
}

// sender is the other end of a connection with a delivery token.
type sender struct{ id, label string }

// guest is what a connection needs until it has authenticated.
type guest struct {
	timer    *time.Timer         // closes the connection if no hello comes
	stranger *strangers.Stranger // nil if the listener does not bound strangers
	verdict  chan bool           // whether its pairing code is right; nil if it came with a token
}

// Accept upgrades a request to a device connection. The caller has checked path, origin and rate.
func (h *Hub) Accept(w http.ResponseWriter, r *http.Request, addr netip.Addr, loopback bool, base string) {
	ws, err := wsconn.Upgrade(w, r, &h.sockets)
	if err != nil {
		h.log.Debug("upgrade failed", "addr", addr, "err", err)
		return
	}
	c := &reader{conn: conn{ws: ws, metrics: h.Metrics, addr: addr, base: base, loopback: loopback}, hub: h, guest: &guest{stranger: strangers.Of(r.Context())}}
	h.conns.add(c)
	h.Metrics.Connections.Inc()
	c.guest.timer = time.AfterFunc(h.HelloTimeout, func() {
		h.Metrics.StrangersDropped.WithLabelValues("hello_time").Inc()
		c.send(&frame.Error{Code: frame.BadFrame, Message: "no hello came in time: send it as the first frame"})
		c.end(frame.CloseTryLater, "no hello in time")
	})
	ws.Serve(c)
	if h.closing.Load() {
		c.end(frame.CloseGoingAway, "the server stops: connect again")
	}
}

// connections are the open connections.
type connections struct {
	mu   sync.Mutex
	open map[*reader]struct{}
}

func (s *connections) add(c *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

func (s *connections) remove(c *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *connections) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *connections) list() []*reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// devices returns the ids of the devices that are connected.
func (s *connections) devices() map[string]bool {
	ids := map[string]bool{}
	for _, c := range s.list() {
		if c.live.Load() {
			ids[c.device.id] = true
		}
	}
	return ids
}

// Connections returns the number of open connections.
func (h *Hub) Connections() int { return h.conns.count() }

// reject closes a connection that has not become a device's.
func (c *reader) reject(e *frame.Error, code frame.CloseCode) {
	c.hub.Metrics.Hellos.WithLabelValues(string(e.Code)).Inc()
	c.send(e)
	c.end(code, string(e.Code))
	c.judge(false)
}

// Message implements wsconn.Handler.
func (c *reader) Message(_ *wsconn.Conn, text bool, payload []byte) {
	var f frame.Up
	err := error(&frame.Error{Code: frame.BadFrame, Message: "a frame is a text message, not a binary one"})
	held := int64(0)
	if len(payload) > largeFrame {
		if held = int64(len(payload)); !c.hub.unapplied.Take(held, c.hub.closing.Load) {
			c.send(&frame.Error{Code: frame.RateLimited, Message: "too much is being sent at once, nothing of this frame was accepted: connect again and send it later", RetryAfter: 1})
			c.end(frame.CloseTryLater, "too much is being sent at once")
			return
		}
	}
	given := false // to the session, which gives it back
	defer func() {
		if !given {
			c.hub.unapplied.Give(held)
		}
	}()
	if text {
		f, err = frame.DecodeUp(payload)
	}
	if c.device == nil && c.sender == nil {
		c.hello(f, err)
		return
	}
	if err != nil {
		c.malformed(err)
		return
	}
	switch f := f.(type) {
	case *frame.Hello:
		c.send(&frame.Error{Code: frame.BadFrame, Message: "this connection has said hello already: open another one"})
	case *frame.Ping:
		c.send(&frame.Pong{ID: f.ID, Time: time.Now().UTC().Truncate(time.Millisecond)})
	case *frame.Deliver:
		given = c.deliver(f, held)
	default:
		if c.sender != nil {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "a connection with a delivery token may only deliver and ping", Ref: ref(f)})
			return
		}
		given = c.device.session.post(&evFrame{d: c.device, c: &c.conn, f: f, held: held})
		c.device.wait()
	}
}

// malformed answers a frame that cannot be decoded.
func (c *reader) malformed(err error) {
	var e *frame.Error
	if !errors.As(err, &e) {
		e = &frame.Error{Code: frame.Internal, Message: "the server could not read the frame"}
	}
	if part := (*frame.PartError)(nil); errors.As(err, &part) && c.device != nil && c.device.session.post(&evPartSpoiled{c.device, &c.conn, e}) {
		c.device.wait()
		return
	}
	c.send(e)
}

// hello handles the first message of a connection, which must be hello.
func (c *reader) hello(f frame.Up, err error) {
	if !c.guest.timer.Stop() {
		return // too late: the connection is being closed
	}
	hello, ok := f.(*frame.Hello)
	if !ok {
		e := &frame.Error{Code: frame.BadFrame, Message: "the first frame must be hello"}
		var bad *frame.Error
		if errors.As(err, &bad) && bad.Code == frame.BadFrame {
			e = bad
		}
		c.reject(e, frame.CloseNoAccess)
		return
	}
	c.claimed = hello.Device.ID
	c.token.Store(TokenSum(hello.Token)) // before it is looked up: a removal of the token finds one of the two
	g, e := c.hub.grant(hello, c.addr)
	if e != nil {
		code := frame.CloseNoAccess
		if e.Code.Retry() {
			code = frame.CloseTryLater
		}
		c.hub.noteRejected(hello.Device.ID, c.addr, e)
		c.reject(e, code)
		return
	}
	c.token.Store(g.sum)
	if g.pair == "" {
		c.admit()
	} else {
		c.guest.verdict = make(chan bool, 1)
	}
	if g.kind == access.Deliver {
		c.greetSender(hello, g.label)
		return
	}
	for _, a := range hello.Accept {
		c.delta = c.delta || a == frame.AcceptDelta
		c.tail = c.tail || a == frame.AcceptTail
		c.tool = c.tool || a == frame.AcceptTool
		c.notices = c.notices || a == frame.AcceptNotice
	}
	c.tail = c.tail && c.delta
	for {
		c.device = c.hub.device(hello.Device.ID)
		if c.device.session.post(&evHello{d: c.device, c: c, f: hello, grant: g}) {
			break
		}
	}
	if c.guest == nil {
		return
	}
	select { // nothing is read meanwhile from a client that may only have guessed
	case right := <-c.guest.verdict:
		if right {
			c.admit()
		}
	case <-c.hub.ctx.Done():
	}
}

// judge says whether the pairing code of the connection is right, if it came with one. It may be
// called by the session.
func (c *reader) judge(right bool) {
	if c.guest == nil {
		return
	}
	select {
	case c.guest.verdict <- right:
	default: // it was judged, or there is no code
	}
}

// admit ends the bounds of connections that have not authenticated.
func (c *reader) admit() {
	c.ws.SetMaxMessage(frame.MaxFrame)
	c.guest.stranger.Admit()
	c.guest = nil
}

// TooBig implements wsconn.Handler.
func (c *reader) TooBig(*wsconn.Conn) {
	if c.guest != nil {
		c.hub.Metrics.StrangersDropped.WithLabelValues("hello_size").Inc()
		c.send(&frame.Error{Code: frame.TooBig, Message: fmt.Sprintf("the hello exceeds the limit of %d KiB: shorten its names and ids", frame.MaxHello>>10)})
		return
	}
	c.send(&frame.Error{Code: frame.TooBig, Message: "a frame may have 16 MiB: send files in parts"})
}

// Drained implements wsconn.Handler.
func (c *reader) Drained(*wsconn.Conn) { c.drain() }

// Closed implements wsconn.Handler.
func (c *reader) Closed(_ *wsconn.Conn, err error) {
	if c.guest != nil {
		c.guest.timer.Stop()
	}
	if errors.Is(err, wsconn.ErrSlow) {
		c.hub.Metrics.Closes.WithLabelValues("slow").Inc()
	}
	if d := c.device; d != nil {
		silence := c.silence(err)
		d.session.run(func(b *batch) { d.closed(b, &c.conn, silence) })
	}
	c.hub.conns.remove(c)
	c.hub.Metrics.Connections.Dec()
}

// silence returns how long the device may have been offline when its connection ended with err.
// Frames written during that time may never have arrived.
func (c *reader) silence(err error) time.Duration {
	switch {
	case errors.Is(err, wsconn.ErrSilent):
		return c.hub.Keeper.Silence()
	case errors.Is(err, wsconn.ErrSlow):
		return writeStall
	}
	return 0
}

// noteRejected logs and remembers a rejected device. An error of the server itself is not
// remembered.
func (h *Hub) noteRejected(device string, addr netip.Addr, e *frame.Error) {
	h.log.Warn("device rejected", "device", device, "addr", addr, "code", e.Code, "reason", e.Message)
	if e.Code != frame.Internal {
		h.rejected.Note(device, addr, string(e.Code), e.Message)
	}
}
