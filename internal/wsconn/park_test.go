package wsconn

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// parked counts the connections of this process that rest.
func parked() int {
	b := make([]byte, 1<<20)
	return strings.Count(string(b[:runtime.Stack(b, true)]), "wsconn.(*Conn).park(")
}

func awaitParked(t *testing.T, n int) {
	t.Helper()
	awaitCondition(t, fmt.Sprintf("%d connections rest", n), func() bool { return parked() == n })
}

// resting is a connection that rests. No Keeper tells it to, so it does not rest again by itself.
func resting(t *testing.T) (*peer, *Conn, *recorder) {
	t.Helper()
	p, c, r := connect(t, Options{MaxMessage: 1 << 20})
	c.rest()
	awaitParked(t, 1)
	return p, c, r
}

func TestRestEndsWithAMessage(t *testing.T) {
	long := strings.Repeat("long", 5000)
	for name, sent := range map[string][]byte{
		"one":       text("a"),
		"many":      append(append(text("a"), masked(ws.OpPing, true, "p")...), text("b")...),
		"long":      text(long),
		"fragments": append(masked(ws.OpText, false, "a"), masked(ws.OpContinuation, true, "b")...),
	} {
		t.Run(name, func(t *testing.T) {
			p, _, r := resting(t)
			p.send(sent)
			want := map[string][]string{"one": {"t:a"}, "many": {"t:a", "t:b"}, "long": {"t:" + long}, "fragments": {"t:ab"}}[name]
			r.awaitMessages(t, want...)
			p.send(text("more"))
			r.awaitMessages(t, append(want, "t:more")...)
			awaitParked(t, 0)
		})
	}
}

// The first byte of a frame may come alone, and the connection be told to rest after any other.
func TestRestInTheMidstOfAMessage(t *testing.T) {
	p, c, r := resting(t)
	var want []string
	for _, message := range []string{"x", strings.Repeat("y", 300), strings.Repeat("z", 9000)} {
		want = append(want, "t:"+message)
		f := text(message)
		for i := 0; i < len(f); i += 1 + len(f)/20 {
			p.send(f[i:min(len(f), i+1+len(f)/20)])
			c.rest()
		}
	}
	r.awaitMessages(t, want...)
}

func TestPongsDoNotEndTheRest(t *testing.T) {
	p, _, r := resting(t)
	for range 3 {
		p.send(masked(ws.OpPong, true, ""))
		p.send(masked(ws.OpPing, true, "here?"))
		p.expect(ws.OpPong, "here?")
		awaitParked(t, 1)
	}
	p.send(text("a"))
	r.awaitMessages(t, "t:a")
	p.send(masked(ws.OpPing, true, "here?"))
	p.expect(ws.OpPong, "here?")
	awaitParked(t, 0)
}

func TestRestEndsWithTheConnection(t *testing.T) {
	for name, end := range map[string]func(*peer, *Conn) error{
		"the peer closes": func(p *peer, _ *Conn) error {
			p.send(masked(ws.OpClose, true, closeBody(1001, "away")))
			p.expectClose(1001)
			return CloseError{Code: 1001, Reason: "away"}
		},
		"we close": func(p *peer, c *Conn) error {
			c.Close(1001, "away")
			p.expectClose(1001)
			p.send(masked(ws.OpClose, true, closeBody(1001, "")))
			return CloseError{Code: 1001, Reason: "away", Local: true}
		},
		"we close, the peer says nothing": func(p *peer, c *Conn) error {
			c.Close(1001, "away")
			return CloseError{Code: 1001, Reason: "away", Local: true}
		},
		"the peer leaves": func(p *peer, _ *Conn) error {
			_ = p.Close()
			return io.EOF
		},
		"we end it": func(_ *peer, c *Conn) error {
			c.CloseNow()
			return ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, c, r := resting(t)
			want := end(p, c)
			if err := r.awaitClosed(t); err != want { //nolint:errorlint // the very error
				t.Fatalf("closed with %v, want %v", err, want)
			}
			awaitParked(t, 0)
		})
	}
}

// The deadline by which a connection is told to rest must not be taken for that of its end.
func TestRestAndCloseAtOnce(t *testing.T) {
	for range 100 {
		p, c, r := connect(t, Options{})
		var both sync.WaitGroup
		both.Go(c.rest)
		both.Go(func() { c.Close(1001, "away") })
		both.Wait()
		p.expectClose(1001)
		p.send(masked(ws.OpClose, true, closeBody(1001, "")))
		p.expectEnd()
		if err := r.awaitClosed(t); err != error(CloseError{Code: 1001, Reason: "away", Local: true}) { //nolint:errorlint // the very error
			t.Fatal(err)
		}
	}
}

func TestRestAtAnyMoment(t *testing.T) {
	p, c, r := connect(t, Options{})
	stop := make(chan struct{})
	var teller sync.WaitGroup
	teller.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(rand.N(200 * time.Microsecond)):
				c.rest()
			}
		}
	})
	defer func() { close(stop); teller.Wait() }()
	var want []string
	for i := range 2000 {
		s := fmt.Sprintf("%d %s", i, strings.Repeat("x", []int{0, 5, 500, 9000, 70000}[rand.IntN(5)]))
		want = append(want, "t:"+s)
		at := rand.IntN(len(s))
		f := append(masked(ws.OpText, false, s[:at]), masked(ws.OpContinuation, true, s[at:])...)
		if i%3 == 0 {
			f = text(s)
		}
		at = rand.IntN(len(f))
		p.send(f[:at])
		if i%5 == 0 {
			r.await(t, "what was sent before", func() bool { return len(r.got) == i })
		}
		p.send(f[at:])
		if i%4 == 0 {
			p.send(masked(ws.OpPong, true, ""))
		}
	}
	r.awaitMessages(t, want...)
	r.mustBeOpen(t)
}

// The Keeper lets those rest from whom nothing comes, keeps pinging them, and drops them when they
// are silent.
func TestKeeperLetsRest(t *testing.T) {
	k := keep(t, 250*time.Millisecond, 1500*time.Millisecond)
	p, _, r := connect(t, Options{Keeper: k})
	for range 12 {
		p.expect(ws.OpPing, "")
		awaitParked(t, 1)
		p.send(masked(ws.OpPong, true, ""))
	}
	p.send(text("a"))
	r.awaitMessages(t, "t:a")
	r.mustBeOpen(t)
	if err := r.awaitClosed(t); !errors.Is(err, ErrSilent) {
		t.Fatalf("closed with %v", err)
	}
}
