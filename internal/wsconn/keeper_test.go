package wsconn

import (
	"errors"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

func TestKeeperPings(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			k := keep(t, time.Millisecond, 0)
			s := newServer(t, Options{Keeper: k}, tr, func() Handler { return &recorder{} })
			p := s.dial(t)
			s.conn(t)
			p.expect(ws.OpPing, "")
			p.expect(ws.OpPing, "")
		})
	}
}

// ponger is told of pongs, in turn with messages.
type ponger struct{ recorder }

func (p *ponger) Pong(*Conn) { p.note(func() { p.got = append(p.got, "pong") }) }

func TestPongsAreTold(t *testing.T) {
	h := &ponger{}
	s := newServer(t, Options{}, raw, func() Handler { return h })
	p := s.dial(t)
	c := s.conn(t)
	p.send(text("a"))
	h.awaitMessages(t, "t:a")
	c.rest()
	awaitParked(t, 1)
	c.Ping()
	p.expect(ws.OpPing, "")
	p.send(masked(ws.OpPong, true, ""))
	h.awaitMessages(t, "t:a", "pong")
	awaitParked(t, 1)
	p.send(text("b"))
	h.awaitMessages(t, "t:a", "pong", "t:b")
}

func TestKeeperDropsSilentPeer(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := keep(t, 250*time.Millisecond, 1500*time.Millisecond)
			handlers := make(chan *recorder, 2)
			s := newServer(t, Options{Keeper: k}, tr, func() Handler {
				r := &recorder{}
				handlers <- r
				return r
			})
			silent := s.dial(t) // half-open: never reads nor writes
			s.conn(t)
			sr := <-handlers
			live := s.dial(t)
			s.conn(t)
			lr := <-handlers
			for range 12 { // answers to pings are all its traffic
				live.expect(ws.OpPing, "")
				live.send(masked(ws.OpPong, true, ""))
			}
			if err := sr.awaitClosed(t); !errors.Is(err, ErrSilent) {
				t.Fatalf("closed with %v", err)
			}
			lr.mustBeOpen(t)
			_ = silent.Close()
		})
	}
}

// A handler that takes long does not make its peer silent.
func TestKeeperSparesBusyHandler(t *testing.T) {
	k := keep(t, 250*time.Millisecond, 300*time.Millisecond)
	release := make(chan struct{})
	r := &recorder{message: func(*Conn, bool, []byte) { <-release }}
	s := newServer(t, Options{Keeper: k}, raw, func() Handler { return r })
	p := s.dial(t)
	s.conn(t)
	p.send(text("x"))
	for range 6 { // six intervals
		p.expect(ws.OpPing, "")
	}
	close(release)
	r.awaitMessages(t, "t:x")
	r.mustBeOpen(t)
}

func TestKeeperForgets(t *testing.T) {
	k := NewKeeper(time.Second, time.Second)
	var conns []*Conn
	for range 2000 {
		c := &Conn{}
		k.add(c)
		conns = append(conns, c)
	}
	for i := range conns {
		k.remove(conns[(i*7)%2000])
	}
	for i, s := range k.slots {
		if len(s) != 0 {
			t.Fatalf("slot %d keeps %d", i, len(s))
		}
	}
}
