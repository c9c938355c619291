package hub

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/strangers"
	"hermes-mobile/internal/wsconn"
)

// Bounds of what waits to be written to one device. Durable frames are given to a connection only while less than
// softQueue waits, so a slow phone holds one large frame and little more; what is live only and does not fit in
// maxQueue ends the connection with 1013.
const (
	softQueue  = 512 << 10
	maxQueue   = 24 << 20
	writeStall = 30 * time.Second
	largeFrame = 64 << 10 // from here on a frame takes room, see roomBytes
)

// roomBytes bounds what all connections together hold of frames larger than largeFrame: once while they come, and once until
// what they said is applied. Who finds no room waits a little, then is told to try later.
const roomBytes = 64 << 20

// conn is one connection of a device, or of a sender of deliveries. Its fields belong to the reading goroutine, except
// where they say otherwise.
type conn struct {
	hub         *Hub
	ws          *wsconn.Conn
	session     *session // after hello
	sender      string   // device id of a connection with a delivery token; receives no chat
	label       string   // of that token
	loopback    bool
	delta       bool // belongs to the session's queue after hello, like tail and tool
	tail        bool // only with delta
	tool        bool
	notices     bool
	told        bool                    // the session's: it was told how things stand
	welcome     bool                    // the session's: it knows that it is approved
	given       string                  // the session's: hash of the own token that its ready gave
	expires     time.Time               // the session's: when the token ends by which it was let in; zero: never
	claimed     string                  // the device id of its hello; written before token is
	token       atomic.Uint64           // TokenSum of the app token it was let in by; 0: a device's own, or none yet
	liveSession atomic.Pointer[session] // set while it is the live connection of its device
	waiting     atomic.Bool             // the session wants to hear when the queue has drained
	broken      atomic.Bool             // something it was given was not taken
	addr        netip.Addr
	base        string // scheme and host for links
	guest       *guest // until it has authenticated
}

// guest is what a connection needs until it has authenticated.
type guest struct {
	timer    *time.Timer         // ends it where no hello comes
	stranger *strangers.Stranger // nil where the listener does not bound strangers
	verdict  chan bool           // whether its pairing code is right; nil where it came with a token
}

// Accept upgrades a request to a device connection. The caller has checked path, origin and throttling.
func (h *Hub) Accept(w http.ResponseWriter, r *http.Request, addr netip.Addr, loopback bool, base string) {
	ws, err := wsconn.Upgrade(w, r, &h.sockets)
	if err != nil {
		h.log.Debug("an upgrade failed", "addr", addr, "error", err)
		return
	}
	c := &conn{hub: h, ws: ws, addr: addr, loopback: loopback, base: base, guest: &guest{stranger: strangers.Of(r.Context())}}
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

// connections are those that are open.
type connections struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

func (s *connections) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

func (s *connections) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *connections) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *connections) list() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// send queues a frame. It may be called from any goroutine.
func (c *conn) send(f frame.Down) {
	if e, ok := f.(*frame.Error); ok {
		c.hub.Metrics.Refused.WithLabelValues(string(e.Code)).Inc()
	}
	c.write(frame.EncodeDown(f))
}

func (c *conn) write(p []byte) { c.sent(c.ws.Send(p)) }

// step sends a step of a message.
func (c *conn) step(m *frame.Message) {
	c.sent(c.ws.Compose(len(m.Text)+160, m.AppendJSON))
}

// sent takes what became of a frame.
func (c *conn) sent(err error) {
	if err != nil {
		c.broken.Store(true)
	}
	if errors.Is(err, wsconn.ErrFull) {
		c.hub.Metrics.Closes.WithLabelValues(strconv.Itoa(int(frame.CloseTryLater))).Inc()
		c.ws.Abort(int(frame.CloseTryLater), "too much waits to be read")
	}
}

// clear reports whether everything that the connection was given has been written to the socket.
func (c *conn) clear() bool { return c.ws.Queued() == 0 && c.ws.Lost() == 0 && !c.broken.Load() }

// end closes the connection after what is queued.
func (c *conn) end(code frame.CloseCode, reason string) {
	c.hub.Metrics.Closes.WithLabelValues(strconv.Itoa(int(code))).Inc()
	c.ws.Close(int(code), reason)
}

// refuse turns a connection away before it is a device's.
func (c *conn) refuse(e *frame.Error, code frame.CloseCode) {
	c.hub.Metrics.Hellos.WithLabelValues(string(e.Code)).Inc()
	c.send(e)
	c.end(code, string(e.Code))
	c.judge(false)
}

// Message implements wsconn.Handler.
func (c *conn) Message(_ *wsconn.Conn, text bool, payload []byte) {
	var f frame.Up
	err := error(&frame.Error{Code: frame.BadFrame, Message: "a frame is a text message, not a binary one"})
	held := int64(0)
	if len(payload) > largeFrame {
		if held = int64(len(payload)); !c.hub.unapplied.Take(held, c.hub.closing.Load) {
			c.send(&frame.Error{Code: frame.RateLimited, Message: "too much is being sent at once, nothing of this frame was taken: connect again and send it later", RetryAfter: 1})
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
	if c.session == nil && c.sender == "" {
		c.first(f, err)
		return
	}
	if err != nil {
		var e *frame.Error
		if !errors.As(err, &e) {
			e = &frame.Error{Code: frame.Internal, Message: "the server could not read the frame"}
		}
		if part := (*frame.PartError)(nil); errors.As(err, &part) && c.session != nil && c.session.post(&spoiled{c, e}) {
			c.session.wait()
			return
		}
		c.send(e)
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
		if c.sender != "" {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "a connection with a delivery token may only deliver and ping", Ref: ref(f)})
			return
		}
		given = c.session.post(&received{c: c, f: f, held: held})
		c.session.wait()
	}
}

// ref is the id by which an error names a frame.
func ref(f frame.Up) string {
	switch f := f.(type) {
	case *frame.Text:
		return f.ID
	case *frame.Audio:
		return f.ID
	case *frame.Media:
		return f.ID
	case *frame.Stop:
		return f.ID
	case *frame.Call:
		return f.ID
	case *frame.Deliver:
		return f.ID
	case *frame.Answer:
		if f.ID == "" {
			return f.PromptID
		}
		return f.ID
	}
	return ""
}

// first handles the first message of a connection, which must be hello.
func (c *conn) first(f frame.Up, err error) {
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
		c.refuse(e, frame.CloseNoAccess)
		return
	}
	c.claimed = hello.Device.ID
	c.token.Store(TokenSum(hello.Token)) // before it is looked up: a removal of the token meets one of the two
	g, e := c.hub.grant(hello, c.addr)
	if e != nil {
		code := frame.CloseNoAccess
		if e.Code.Retry() {
			code = frame.CloseTryLater
		}
		c.hub.noteRejected(hello.Device.ID, c.addr, e)
		c.hub.logRejected(hello.Device.ID, c.addr, e.Code, e.Message)
		c.refuse(e, code)
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
		c.session = c.hub.session(hello.Device.ID)
		if c.session.post(&helloed{c: c, f: hello, grant: g}) {
			break
		}
	}
	if c.guest == nil {
		return
	}
	select { // nothing is read meanwhile from somebody who may only have guessed
	case right := <-c.guest.verdict:
		if right {
			c.admit()
		}
	case <-c.hub.ctx.Done():
	}
}

// judge says whether the pairing code of the connection is right, where it came with one.
func (c *conn) judge(right bool) {
	if c.guest == nil {
		return
	}
	select {
	case c.guest.verdict <- right:
	default: // it was judged, or there is no code
	}
}

// admit ends the bounds of connections that have not authenticated. It is called by the reading goroutine.
func (c *conn) admit() {
	c.ws.SetMaxMessage(frame.MaxFrame)
	c.guest.stranger.Admit()
	c.guest = nil
}

// TooBig implements wsconn.Handler.
func (c *conn) TooBig(*wsconn.Conn) {
	if c.guest != nil {
		c.hub.Metrics.StrangersDropped.WithLabelValues("hello_size").Inc()
		c.send(&frame.Error{Code: frame.TooBig, Message: "a hello may have 4 KiB: shorten its names and ids"})
		return
	}
	c.send(&frame.Error{Code: frame.TooBig, Message: "a frame may have 16 MiB: send files in parts"})
}

// Drained implements wsconn.Handler.
func (c *conn) Drained(*wsconn.Conn) {
	if c.waiting.CompareAndSwap(true, false) && c.session != nil {
		c.session.post(drained{c})
	}
}

// Closed implements wsconn.Handler.
func (c *conn) Closed(_ *wsconn.Conn, err error) {
	if c.guest != nil {
		c.guest.timer.Stop()
	}
	if errors.Is(err, wsconn.ErrSlow) {
		c.hub.Metrics.Closes.WithLabelValues("slow").Inc()
	}
	if c.session != nil {
		c.session.post(gone{c, c.silence(err)})
	}
	c.hub.conns.remove(c)
	c.hub.Metrics.Connections.Dec()
}

// silence is how long the device may have been away when its connection ended with err: what was written meanwhile may
// never have arrived.
func (c *conn) silence(err error) time.Duration {
	switch {
	case errors.Is(err, wsconn.ErrSilent):
		return c.hub.Keeper.Silence()
	case errors.Is(err, wsconn.ErrSlow):
		return writeStall
	}
	return 0
}

// grant says who a hello is from, by its token. It counts wrong tokens against the address.
type grant struct {
	sum   uint64 // of the app token, 0 for a device's own
	label string // what the device is bound to
	kind  access.Kind
	own   bool   // by the device's own token, or by a pairing code
	hash  string // of the device's own token
	pair  string // hash of a pairing code that is still to be redeemed
	addr  netip.Addr

	expires time.Time // of the app token; zero: never
}

func (h *Hub) grant(f *frame.Hello, addr netip.Addr) (grant, *frame.Error) {
	if after, blocked := h.Guard.Blocked(addr); blocked {
		return grant{}, &frame.Error{Code: frame.RateLimited, Message: "too many wrong tokens came from this address: wait before the next try", RetryAfter: seconds(after)}
	}
	if f.Pair != "" {
		return grant{label: ownLabel(f.Device.ID), own: true, pair: access.HashSecret(access.NormalizeCode(f.Pair)), addr: addr}, nil
	}
	if t, ok := h.Tokens.Match(f.Token); ok {
		switch {
		case !t.For(f.Device.ID):
			return grant{}, &frame.Error{Code: frame.Forbidden, Message: "this token is bound to another device: connect under the id of that device, or ask the agent's owner for a token of this one"}
		case t.Expired(time.Now()):
			return grant{}, appTokenExpired(&t)
		}
		h.noteUse(t.Label)
		return grant{label: t.Label, kind: t.Kind, addr: addr, sum: TokenSum(f.Token), expires: t.Expires}, nil
	}
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Second)
	defer cancel()
	hash := access.HashSecret(f.Token)
	dev, err := h.store.DeviceByToken(ctx, hash)
	switch {
	case err != nil:
		h.storeFailed("look a token up", err)
		return grant{}, &frame.Error{Code: frame.Internal, Message: "the server cannot read its store: try again later"}
	case dev == nil:
		h.Guard.Wrong(addr)
		return grant{}, &frame.Error{Code: frame.AuthFailed, Message: "the token is wrong: ask the agent's owner for the right one"}
	case dev.ID != f.Device.ID:
		return grant{}, &frame.Error{Code: frame.Forbidden, Message: "this token belongs to another device: pair this one"}
	}
	return grant{label: ownLabel(dev.ID), own: true, hash: hash, addr: addr}, nil
}

// TokenSum stands for a token where only equality matters.
func TokenSum(secret string) uint64 {
	return sumOf(sha256.Sum256([]byte(secret)))
}

// sumOf is TokenSum for the SHA-256 of a token.
func sumOf(hash [sha256.Size]byte) uint64 {
	return binary.BigEndian.Uint64(hash[:8]) | 1 // never zero, which stands for none
}

// ownLabel is the label of a device's own token.
func ownLabel(device string) string { return "device:" + device }

func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }
