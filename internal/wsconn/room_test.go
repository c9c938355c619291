package wsconn

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// The large messages of all connections share one memory budget. When it is exhausted, the peer gets
// "try again later". Small messages need no budget, and a message that has its share is not lost.
func TestRoomOfLargeMessages(t *testing.T) {
	t.Parallel()
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 250_000
			room := NewRoom(size + 1000)
			room.wait = 50 * time.Millisecond
			handlers := make(chan *recorder, 8)
			s := newServer(t, Options{MaxMessage: 1 << 20, Room: room}, tr, func() Handler {
				r := &recorder{}
				handlers <- r
				return r
			})
			join := func() (*peer, *recorder) {
				p := s.dial(t)
				s.conn(t)
				return p, <-handlers
			}
			large := strings.Repeat("x", size)
			first, got := join()
			m := text(large)
			first.send(m[:len(m)-1])
			awaitCondition(t, "the room to be taken", func() bool { return room.Held() == size })

			small, smalls := join()
			small.send(text("small"))
			smalls.awaitMessages(t, "t:small")
			small.send(text(strings.Repeat("y", largeBuffer)))
			smalls.await(t, "the largest that needs no room", func() bool { return len(smalls.got) == 2 })

			for _, cut := range []int{size, 1000} { // one frame, then many
				p, r := join()
				var stream []byte
				op := ws.OpText
				for rest := large; rest != ""; {
					n := min(cut, len(rest))
					stream = append(stream, masked(op, n == len(rest), rest[:n])...)
					rest, op = rest[n:], ws.OpContinuation
				}
				p.send(stream)
				p.expectClose(CodeTryLater)
				_ = p.Close()
				if err := (CloseError{}); !errors.As(r.awaitClosed(t), &err) || err.Code != CodeTryLater || len(r.got) != 0 {
					t.Errorf("closed with %v, got %d messages", err, len(r.got))
				}
			}
			if held := room.Held(); held != size {
				t.Errorf("%d bytes are held, not %d", held, size)
			}
			first.send(m[len(m)-1:])
			got.awaitMessages(t, "t:"+large)
			awaitCondition(t, "the room to be free", func() bool { return room.Held() == 0 })

			next, r := join()
			next.send(text(large))
			r.awaitMessages(t, "t:"+large)
			next.send(m[:len(m)/2]) // the peer disconnects in the middle of its message
			awaitCondition(t, "the room to be taken", func() bool { return room.Held() > 0 })
			_ = next.Close()
			awaitCondition(t, "the room to be free", func() bool { return room.Held() == 0 })
		})
	}
}

// A waiting peer gets memory as soon as enough is free, and the budget is never exceeded.
func TestRoomIsShared(t *testing.T) {
	t.Parallel()
	room := NewRoom(100)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if !room.Take(50, func() bool { return false }) {
				t.Error("no room in time")
				return
			}
			if held := room.Held(); held > 100 {
				t.Errorf("%d of 100 held", held)
			}
			room.Give(50)
		})
	}
	wg.Wait()
	if !room.Take(1000, func() bool { return false }) {
		t.Error("what is larger than the room never has it")
	}
	if room.Take(1, func() bool { return true }) {
		t.Error("room that is taken is given again")
	}
}

// A message in frames of one byte costs a few buffers, not one per frame.
func TestManyTinyFragments(t *testing.T) {
	const size = 300_000
	stream := masked(ws.OpText, false, "{")
	for range size {
		stream = append(stream, masked(ws.OpContinuation, false, " ")...)
	}
	stream = append(stream, masked(ws.OpContinuation, true, "}")...)
	grown := testing.AllocsPerRun(1, func() {
		room := NewRoom(size * 4)
		nc := &cutConn{in: bytes.NewReader(stream), cut: 5000}
		r := &recorder{}
		c := newConn(nc, nil, &Options{MaxMessage: 1 << 20, Room: room})
		c.Serve(r)
		<-c.Done()
		if len(r.got) != 1 || len(r.got[0]) != size+4 || room.Held() != 0 {
			t.Errorf("%d messages, %d held", len(r.got), room.Held())
		}
	})
	if grown > 1000 {
		t.Errorf("%.0f allocations", grown)
	}
}
