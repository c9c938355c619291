package wsconn

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
)

func TestCloseByPeer(t *testing.T) {
	for name, tr := range transports {
		for _, tc := range []struct {
			body, answer string
			want         CloseError
		}{
			{closeBody(1000, "bye"), closeBody(1000, ""), CloseError{Code: 1000, Reason: "bye"}},
			{closeBody(4001, ""), closeBody(4001, ""), CloseError{Code: 4001}},
			{closeBody(1012, "restart"), closeBody(1012, ""), CloseError{Code: 1012, Reason: "restart"}},
			{"", "", CloseError{Code: CodeNoStatus}},
		} {
			r := &recorder{}
			s := newServer(t, Options{}, tr, func() Handler { return r })
			p := s.dial(t)
			c := s.conn(t)
			p.send(append(append(text("last"), masked(ws.OpClose, true, tc.body)...), text("too late")...))
			p.expect(ws.OpClose, tc.answer)
			if tr == raw {
				_ = p.Close()
			} else {
				p.expectEnd()
			}
			if err := r.awaitClosed(t); !errors.Is(err, tc.want) {
				t.Errorf("%s: closed with %v, want %v", name, err, tc.want)
			}
			if len(r.got) != 1 {
				t.Errorf("%s: got %q", name, r.got)
			}
			if err := c.Send(nil); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Send after the end: %v", name, err)
			}
			<-c.Done()
		}
	}
}

func TestCloseByUs(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			s := newServer(t, Options{}, tr, func() Handler { return r })
			p := s.dial(t)
			c := s.conn(t)
			done := c.Done()
			if err := c.Send([]byte("last")); err != nil {
				t.Fatal(err)
			}
			reason := strings.Repeat("é", 70)
			c.Close(1008, reason)
			c.Close(1000, "only the first counts")
			if err := c.Send([]byte("x")); !errors.Is(err, ErrClosed) {
				t.Fatalf("Send: %v", err)
			}
			p.expect(ws.OpText, "last")
			p.expect(ws.OpClose, closeBody(1008, reason[:122]))
			p.send(text("thrown away"))
			p.send(masked(ws.OpClose, true, closeBody(1008, "")))
			p.expectEnd()
			if err := r.awaitClosed(t); !errors.Is(err, CloseError{Code: 1008, Reason: reason[:122], Local: true}) {
				t.Fatalf("closed with %v", err)
			}
			if len(r.got) != 0 {
				t.Fatalf("got %q", r.got)
			}
			<-done
		})
	}
}

func TestCloseByUsCoderWebsocket(t *testing.T) {
	r := &recorder{}
	s := newServer(t, Options{}, overTLS, func() Handler { return r })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, _, err := websocket.Dial(ctx, s.URL, &websocket.DialOptions{HTTPClient: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	s.conn(t).Close(1013, "slow")
	if _, _, err = p.Read(ctx); websocket.CloseStatus(err) != 1013 {
		t.Fatalf("peer got %v", err)
	}
	if err := r.awaitClosed(t); !errors.Is(err, CloseError{Code: 1013, Reason: "slow", Local: true}) {
		t.Fatalf("closed with %v", err)
	}
}

// Close writes the queued messages before the close frame. Its time limit does not run out while the
// peer reads.
func TestCloseFlushes(t *testing.T) {
	p, c, r := connect(t, Options{MaxQueue: 1 << 20})
	n := fill(t, c, 10_000)
	c.Close(CodeNormal, "")
	for range n {
		if op, _ := p.frame(); op != ws.OpText {
			t.Fatalf("frame %x", op)
		}
	}
	p.expectClose(CodeNormal)
	_ = p.Close()
	r.awaitClosed(t)
}

func TestAbortDropsTheQueue(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{MaxQueue: 1 << 20}, tr, func() Handler { return &recorder{} })
			p := s.dial(t)
			c := s.conn(t)
			n := fill(t, c, 10_000)
			c.Abort(1013, "slow")
			got := 0
			for ; ; got++ {
				if op, _ := p.frame(); op == ws.OpClose {
					break
				}
			}
			if got > n-90 {
				t.Fatalf("%d of %d messages came", got, n)
			}
		})
	}
}

// Close ends within some seconds if the peer does not read, or does not answer.
func TestCloseOfDeadPeer(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"does not answer": false, "does not read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c, r := connect(t, Options{MaxQueue: 1 << 20})
			if full {
				fill(t, c, 10_000)
			}
			begin := time.Now()
			c.Close(1001, "going away")
			if err := r.awaitClosed(t); !errors.Is(err, CloseError{Code: 1001, Reason: "going away", Local: true}) {
				t.Fatalf("closed with %v", err)
			}
			limit := closeWait + closeWait/2
			if full {
				limit += closeWait // the kernel may buffer some of the queue, which looks as if the peer read
			}
			if d := time.Since(begin); d > limit {
				t.Fatalf("took %v", d)
			}
		})
	}
}

func TestCloseNow(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			s := newServer(t, Options{MaxQueue: 1 << 20}, tr, func() Handler { return r })
			s.dial(t)
			c := s.conn(t)
			fill(t, c, 10_000)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(c.CloseNow)
				wg.Go(func() { c.Close(1000, "") })
			}
			wg.Wait()
			c.CloseNow()
			r.awaitClosed(t)
			<-c.Done()
			<-c.Done()
		})
	}
}

func TestCloseWithinHandler(t *testing.T) {
	for _, now := range []bool{false, true} {
		r := &recorder{message: func(c *Conn, _ bool, _ []byte) {
			if now {
				c.CloseNow()
			} else {
				c.Close(1008, "no")
			}
		}}
		s := newServer(t, Options{}, raw, func() Handler { return r })
		p := s.dial(t)
		s.conn(t)
		p.send(append(text("one"), text("two")...))
		if !now {
			p.expectClose(1008)
		}
		_ = p.Close()
		r.awaitClosed(t)
		if len(r.got) != 1 {
			t.Fatalf("got %q", r.got)
		}
	}
}

// A connection may be closed instead of served.
func TestCloseBeforeServe(t *testing.T) {
	for _, tr := range transports {
		for _, serve := range []bool{false, true} {
			conns := make(chan *Conn, 1)
			r := &recorder{}
			s := &server{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				c, err := Upgrade(w, q, &Options{})
				if err != nil {
					t.Error(err)
					return
				}
				c.Close(1013, "too many")
				if serve {
					c.Serve(r)
				}
				conns <- c
			}))}
			if tr == overTLS {
				s.StartTLS()
			} else {
				s.Start()
			}
			p := s.dial(t)
			p.expectClose(1013)
			_ = p.Close()
			<-(<-conns).Done()
			if serve {
				if err := r.awaitClosed(t); !errors.Is(err, CloseError{Code: 1013, Reason: "too many", Local: true}) {
					t.Fatalf("closed with %v", err)
				}
			}
			s.Close()
		}
	}
}

// Both sides close at once, many times, with traffic in both directions.
func TestCloseCrossing(t *testing.T) {
	for range 50 {
		p, c, r := connect(t, Options{})
		var wg sync.WaitGroup
		wg.Go(func() { c.Close(1001, "") })
		wg.Go(func() {
			for c.Send([]byte("x")) == nil {
			}
		})
		p.send(masked(ws.OpClose, true, closeBody(1000, "")))
		for {
			if op, _ := p.frame(); op == ws.OpClose {
				break
			}
		}
		begin := time.Now()
		r.awaitClosed(t)
		if d := time.Since(begin); d > closeWait/2 {
			t.Fatalf("took %v", d)
		}
		wg.Wait()
		_ = p.Close()
	}
}
