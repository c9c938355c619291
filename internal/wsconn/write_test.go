package wsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
)

// fill sends messages of size until the connection takes no more, and returns
// how many it took.
func fill(t *testing.T, c *Conn, size int) int {
	t.Helper()
	m := []byte(strings.Repeat("m", size))
	for n := 0; n < 1_000_000; n++ {
		switch err := c.Send(m); {
		case errors.Is(err, ErrFull):
			return n
		case err != nil:
			t.Fatal(err)
		}
	}
	t.Fatal("never full")
	return 0
}

func TestSend(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			s := newServer(t, Options{}, tr, func() Handler { return r })
			p := s.dial(t)
			c := s.conn(t)
			for _, n := range []int{0, 125, 126, 65535, 65536, 200_000, 5 << 20, 1} {
				m := strings.Repeat("x", n)
				if err := c.Send([]byte(m)); err != nil {
					t.Fatal(err)
				}
				p.expect(ws.OpText, m)
			}
			awaitCondition(t, "empty queue", func() bool { return c.Queued() == 0 })
		})
	}
}

func TestOrderOfConcurrentSends(t *testing.T) {
	const senders, each = 8, 400
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{WriteStall: patience}, tr, func() Handler { return &recorder{} })
			p := s.dial(t)
			c := s.conn(t)
			var wg sync.WaitGroup
			pad := strings.Repeat("-", 3000)
			for id := range senders {
				wg.Go(func() {
					for i := range each {
						if err := c.Send(fmt.Appendf(nil, "%d %d %s", id, i, pad[:(i*37)%3000])); err != nil {
							t.Error(err)
							return
						}
						if i%50 == 0 {
							c.Ping()
						}
					}
				})
			}
			var next [senders]int
			for n := 0; n < senders*each; {
				op, m := p.frame()
				if op == ws.OpPing {
					continue
				}
				var id, i int
				if _, err := fmt.Sscanf(m, "%d %d", &id, &i); err != nil || next[id] != i {
					t.Fatalf("sender %d: message %d, want %d (%v)", id, i, next[id], err)
				}
				next[id]++
				n++
			}
			wg.Wait()
		})
	}
}

// What was composed is written, or waits, untouched by what is composed later, for this peer and
// for others.
func TestComposedMessagesAreTheirOwn(t *testing.T) {
	const messages = 3000
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{WriteStall: patience}, tr, func() Handler { return &recorder{} })
			text := func(peer, i int) string {
				return fmt.Sprintf("%d %d %s", peer, i, strings.Repeat(string(rune('a'+i%26)), (i*i)%5000))
			}
			var peers, work sync.WaitGroup
			for peer := range 3 {
				p := s.dial(t)
				c := s.conn(t)
				work.Go(func() { // faster than the peer reads
					for i := range messages {
						m := text(peer, i)
						if err := c.Compose(len(m), func(b []byte) []byte { return append(b, m...) }); err != nil {
							t.Error(err)
						}
					}
				})
				peers.Go(func() {
					for i := range messages {
						if _, got := p.frame(); got != text(peer, i) {
							t.Errorf("message %d of peer %d is not what was composed", i, peer)
							return
						}
					}
				})
			}
			work.Wait()
			peers.Wait()
		})
	}
}

// A peer that does not read costs its bound, is told full, and hurts nobody; when
// it reads again it gets everything that was taken, in order.
func TestSlowPeer(t *testing.T) {
	const bound, size = 1 << 20, 10_000
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			var handlers []*recorder
			s := newServer(t, Options{MaxQueue: bound, LowWater: bound / 4}, tr, func() Handler {
				handlers = append(handlers, &recorder{})
				return handlers[len(handlers)-1]
			})
			slow := s.dial(t)
			c := s.conn(t)
			quick := s.dial(t)
			q := s.conn(t)
			n := fill(t, c, size)
			if got := c.Queued(); got > bound || got < bound/2 { // some may have been written since
				t.Fatalf("%d bytes are queued, the bound is %d", got, bound)
			}
			if err := q.Send([]byte("hi")); err != nil {
				t.Fatal(err)
			}
			quick.expect(ws.OpText, "hi")
			m := strings.Repeat("m", size)
			for range n {
				slow.expect(ws.OpText, m)
			}
			handlers[0].await(t, "Drained", func() bool { return handlers[0].drained > 0 })
			awaitCondition(t, "empty queue", func() bool { return c.Queued() == 0 })
			if err := c.Send([]byte("again")); err != nil {
				t.Fatal(err)
			}
			slow.expect(ws.OpText, "again")
		})
	}
}

func TestOneMessageMayPassTheBound(t *testing.T) {
	p, c, _ := connect(t, Options{MaxQueue: 1000})
	m := strings.Repeat("x", 20<<20)
	if err := c.Send([]byte(m)); err != nil {
		t.Fatal(err)
	}
	if err := c.Send([]byte("x")); !errors.Is(err, ErrFull) {
		t.Fatalf("second message: %v", err)
	}
	p.expect(ws.OpText, m)
}

// Pongs come at a frame border in the middle of the queue, and a flood of pings
// leaves one answer.
func TestPongPassesTheQueue(t *testing.T) {
	p, c, r := connect(t, Options{MaxQueue: 8 << 20})
	n := fill(t, c, 100_000)
	before := c.Queued()
	for i := range 1000 {
		p.send(masked(ws.OpPing, true, fmt.Sprint(i)))
	}
	p.send(text("done"))
	r.awaitMessages(t, "t:done")
	if after := c.Queued(); after > before+200 {
		t.Fatalf("pings made the queue grow from %d to %d", before, after)
	}
	c.Close(CodeNormal, "")
	var messages, pongAt, pongs int
	var last string
	for {
		op, s := p.frame()
		switch op {
		case ws.OpText:
			messages++
			continue
		case ws.OpPong:
			last, pongAt = s, messages
			pongs++
			continue
		}
		break
	}
	if messages != n || pongAt == 0 || pongAt > n-50 || last != "999" || pongs == 1000 {
		t.Fatalf("%d pongs, the last is %q after %d of %d messages (%d sent)", pongs, last, pongAt, messages, n)
	}
}

func TestStalledPeerIsDropped(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			s := newServer(t, Options{MaxQueue: 1 << 20, WriteStall: 200 * time.Millisecond}, tr, func() Handler { return r })
			s.dial(t)
			c := s.conn(t)
			for {
				if err := c.Send(make([]byte, 100_000)); errors.Is(err, ErrClosed) {
					break
				} else if err != nil {
					time.Sleep(time.Millisecond) // full: polls until the drop
				}
			}
			if err := r.awaitClosed(t); !errors.Is(err, ErrSlow) {
				t.Fatalf("closed with %v", err)
			}
			if c.Queued() != 0 {
				t.Fatal("the queue is kept")
			}
		})
	}
}

// A peer that reads slowly but steadily is kept, though it never makes enough
// room for the socket to be reported writable in time.
func TestSteadyPeerIsKept(t *testing.T) {
	t.Parallel()
	p, c, r := connect(t, Options{MaxQueue: 1 << 20, WriteStall: time.Second})
	n := fill(t, c, 50_000)
	buf := make([]byte, 8<<10)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for range 120 { // three times the limit
		<-tick.C
		if _, err := p.Read(buf); err != nil {
			t.Fatalf("after %d messages: %v", n, err)
		}
	}
	r.mustBeOpen(t)
}

// The queue alone: whatever is interleaved, frames stay whole and in order.
func TestQueue(t *testing.T) {
	var q queue
	var out []byte
	b := &buffer{b: make([]byte, 7)}
	take := func(n int) {
		g := q.gather(b)
		g = min(g, n)
		out = append(out, b.b[:g]...)
		q.advance(g)
	}
	q.push(outFrame{[]byte("first message"), ws.OpText})
	take(5)
	for i := range 20 {
		q.push(outFrame{fmt.Appendf(nil, "message %d", i), ws.OpText})
		q.control(outFrame{fmt.Appendf(nil, "ping %d", i), ws.OpPing})
		q.control(outFrame{fmt.Appendf(nil, "pong %d", i), ws.OpPong})
		take(3)
	}
	for range 10 {
		take(7)
	}
	q.drop()
	q.push(outFrame{nil, ws.OpClose})
	for q.size > 0 {
		take(7)
	}
	in := strings.NewReader(string(out))
	texts, last := 0, ws.OpText
	for in.Len() > 0 {
		f, err := readFrame(in)
		if err != nil {
			t.Fatal(err)
		}
		if last = f.Header.OpCode; last != ws.OpText {
			continue
		}
		want := "first message"
		if texts > 0 {
			want = fmt.Sprintf("message %d", texts-1)
		}
		if string(f.Payload) != want {
			t.Fatalf("got %q, want %q", f.Payload, want)
		}
		texts++
	}
	if texts < 2 || texts == 21 || last != ws.OpClose || q.frames != nil {
		t.Fatalf("%d messages, last %x, rest %+v", texts, last, q)
	}
}

// Another implementation at the other end.
func TestCoderWebsocket(t *testing.T) {
	r := &recorder{message: func(c *Conn, _ bool, p []byte) {
		if err := c.Send(append([]byte("echo "), p...)); err != nil {
			t.Error(err)
		}
	}}
	s := newServer(t, Options{MaxMessage: 1 << 20}, raw, func() Handler { return r })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, _, err := websocket.Dial(ctx, s.URL, &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover, Subprotocols: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.CloseNow() //nolint:errcheck // only when the test failed before
	p.SetReadLimit(2 << 20)
	s.conn(t)
	for _, n := range []int{0, 5, 100_000, 1 << 20} {
		m := strings.Repeat("y", n)
		if err := p.Write(ctx, websocket.MessageText, []byte(m)); err != nil {
			t.Fatal(err)
		}
		typ, got, err := p.Read(ctx)
		if err != nil || typ != websocket.MessageText || string(got) != "echo "+m {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	reading := p.CloseRead(ctx)
	if err := p.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(4409, "replaced"); err != nil {
		t.Fatalf("close handshake: %v", err)
	}
	<-reading.Done()
	var ce CloseError
	if err := r.awaitClosed(t); !errors.As(err, &ce) || ce != (CloseError{Code: 4409, Reason: "replaced"}) {
		t.Fatalf("closed with %v", err)
	}
}
