package wsconn

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

func TestMessages(t *testing.T) {
	for _, tr := range transports {
		r := &recorder{}
		s := newServer(t, Options{}, tr, func() Handler { return r })
		p := s.dial(t)
		c := s.conn(t)
		var want []string
		for _, n := range []int{0, 1, 125, 126, 4096, smallBuffer - 8, smallBuffer, 65535, 65536, 200_000, 3 << 20} {
			m := strings.Repeat("x", n)
			p.send(text(m))
			want = append(want, "t:"+m)
		}
		p.send(masked(ws.OpBinary, true, "\xff"))
		p.send(text("\xff not UTF-8"))
		want = append(want, "b:\xff", "t:\xff not UTF-8")
		r.awaitMessages(t, want...)
		c.Close(CodeNormal, "")
		p.expectClose(CodeNormal)
		p.send(masked(ws.OpClose, true, closeBody(CodeNormal, "")))
		r.awaitClosed(t)
	}
}

// However the bytes are cut, the messages are the same.
func TestAnyCut(t *testing.T) {
	var stream []byte
	var want []string
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		b := make([]byte, []int{3, 200, 5000, 9000, 70_000}[i%5]+rnd.IntN(100))
		for j := range b {
			b[j] = byte(rnd.Uint32())
		}
		s := string(b)
		want = append(want, "b:"+s)
		if i%3 == 0 {
			stream = append(stream, masked(ws.OpBinary, true, s)...)
			continue
		}
		op := ws.OpBinary
		for len(s) > 0 {
			n := min(1+rnd.IntN(len(s)), len(s))
			stream = append(stream, masked(op, n == len(s), s[:n])...)
			if rnd.IntN(2) == 0 {
				stream = append(stream, masked(ws.OpPong, true, "between")...)
			}
			s, op = s[n:], ws.OpContinuation
		}
	}
	for _, cut := range []int{1, 7, 4096, 9001, len(stream)} {
		p, _, r := connect(t, Options{MaxMessage: 100_000})
		_ = p.Conn.(*net.TCPConn).SetNoDelay(true)
		part := stream
		w := want
		if cut == 1 { // a few messages are enough for a byte at a time
			part, w = stream[:12_000], want[:2]
		}
		for len(part) > 0 {
			n := min(cut, len(part))
			p.send(part[:n])
			part = part[n:]
		}
		r.awaitMessages(t, w...)
	}
}

func TestFragmentsWithPingBetween(t *testing.T) {
	p, _, r := connect(t, Options{})
	p.send(masked(ws.OpText, false, "one "))
	p.send(masked(ws.OpPing, true, "p1"))
	p.send(masked(ws.OpContinuation, false, ""))
	p.send(masked(ws.OpContinuation, false, "two "))
	p.expect(ws.OpPong, "p1")
	p.send(masked(ws.OpContinuation, true, "three"))
	p.send(masked(ws.OpBinary, false, ""))
	p.send(masked(ws.OpContinuation, true, ""))
	r.awaitMessages(t, "t:one two three", "b:")
}

func TestInvalidFrames(t *testing.T) {
	for name, b := range map[string][]byte{
		"unmasked":              ws.MustCompileFrame(ws.NewTextFrame([]byte("x"))),
		"reserved bit":          append([]byte{0xc1}, text("x")[1:]...),
		"reserved data op":      masked(3, true, "x"),
		"reserved control op":   masked(11, true, "x"),
		"long control":          masked(ws.OpPing, true, strings.Repeat("x", 126)),
		"fragmented control":    masked(ws.OpPing, false, "x"),
		"continuation first":    masked(ws.OpContinuation, true, "x"),
		"text within fragments": append(masked(ws.OpText, false, "x"), text("x")...),
		"length with top bit":   {0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4},
		"close with one byte":   masked(ws.OpClose, true, "x"),
		"close with 1005":       masked(ws.OpClose, true, closeBody(1005, "")),
		"close with 2999":       masked(ws.OpClose, true, closeBody(2999, "")),
		"close not UTF-8":       masked(ws.OpClose, true, closeBody(1000, "\xff")),
	} {
		t.Run(name, func(t *testing.T) {
			p, c, r := connect(t, Options{})
			p.send(text("before"))
			p.send(append(b, "whatever follows"...))
			p.expectClose(CodeProtocolError)
			_ = p.Conn.(*net.TCPConn).CloseWrite()
			p.expectEnd()
			var ce CloseError
			if err := r.awaitClosed(t); !errors.As(err, &ce) || ce.Code != CodeProtocolError || !ce.Local {
				t.Fatalf("closed with %v", err)
			}
			r.awaitMessages(t, "t:before")
			if err := c.Send(nil); !errors.Is(err, ErrClosed) {
				t.Fatalf("Send after the end: %v", err)
			}
		})
	}
}

func TestTooBig(t *testing.T) {
	const limit = 100_000
	whole := strings.Repeat("x", limit)
	fragments := func(over int) (b []byte) {
		op := ws.OpText
		for i := range 5 {
			n := limit / 5
			if i == 4 {
				n += over
			}
			b = append(b, masked(op, i == 4, whole[:n])...)
			op = ws.OpContinuation
		}
		return b
	}
	terabyte := []byte{0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4}
	for name, b := range map[string][]byte{
		"one frame":      text(whole + "x"),
		"five fragments": fragments(1),
		"terabyte":       terabyte,
		"terabyte later": append(masked(ws.OpText, false, "x"), append([]byte{0x80}, terabyte[1:]...)...),
		"63 bits":        {0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{tooBig: func(c *Conn) { _ = c.Send([]byte("too big")) }}
			s := newServer(t, Options{MaxMessage: limit}, raw, func() Handler { return r })
			p := s.dial(t)
			s.conn(t)
			p.send(text(whole))
			p.send(fragments(0))
			p.send(b)
			p.send(text(whole)) // the peer has not noticed yet
			p.expect(ws.OpText, "too big")
			p.expectClose(CodeTooBig)
			_ = p.Conn.Close()
			var ce CloseError
			if err := r.awaitClosed(t); !errors.As(err, &ce) || ce.Code != CodeTooBig || r.big != 1 {
				t.Fatalf("closed with %v, TooBig %d times", err, r.big)
			}
			if len(r.got) != 2 {
				t.Fatalf("%d messages, want 2", len(r.got))
			}
		})
	}
}

// After TooBig the peer's close frame is found behind the rest of the message.
func TestTooBigThenClose(t *testing.T) {
	p, _, r := connect(t, Options{MaxMessage: 10})
	p.send(text(strings.Repeat("x", 20_000)))
	p.expectClose(CodeTooBig)
	p.send(masked(ws.OpPing, true, "not answered"))
	p.send(masked(ws.OpClose, true, closeBody(CodeTooBig, "")))
	p.expectEnd()
	r.awaitClosed(t)
}

func TestSetMaxMessage(t *testing.T) {
	r := &recorder{message: func(c *Conn, _ bool, p []byte) {
		if string(p) == "hello" {
			c.SetMaxMessage(100)
		}
	}}
	s := newServer(t, Options{MaxMessage: 5}, raw, func() Handler { return r })
	p := s.dial(t)
	s.conn(t)
	p.send(text("hello"))
	p.send(text("longer than five"))
	r.awaitMessages(t, "t:hello", "t:longer than five")
}

func TestBytesWithUpgradeRequest(t *testing.T) {
	p, c, r := connect(t, Options{}, append(text("at once"), masked(ws.OpPing, true, "p")...)...)
	p.expect(ws.OpPong, "p")
	p.send(text("later"))
	r.awaitMessages(t, "t:at once", "t:later")
	if err := c.Send([]byte("x")); err != nil {
		t.Fatal(err)
	}
	p.expect(ws.OpText, "x")

	half := text("in two halves")
	p, _, r = connect(t, Options{}, half[:5]...)
	p.send(half[5:])
	r.awaitMessages(t, "t:in two halves")
}

func TestPeerLeavesWithoutClose(t *testing.T) {
	p, _, r := connect(t, Options{})
	p.send(text("x"))
	r.awaitMessages(t, "t:x")
	_ = p.Close()
	if err := r.awaitClosed(t); !errors.Is(err, io.EOF) {
		t.Fatalf("closed with %v", err)
	}
}

func TestRefusals(t *testing.T) {
	s := newServer(t, Options{}, raw, func() Handler { return &recorder{} })
	good := http.Header{
		"Connection": {"keep-alive", "x, UPGRADE"}, "Upgrade": {"WebSocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
	}
	for _, tc := range []struct {
		method, header, value string
		status                int
	}{
		{"GET", "X-Nothing", "", 101},
		{"GET", "X-Body", "of a known length", 400},
		{"GET", "X-Chunks", "of an unknown length", 400},
		{"POST", "X-Nothing", "", 405},
		{"GET", "Upgrade", "", 426},
		{"GET", "Upgrade", "h2c", 426},
		{"GET", "Connection", "close", 400},
		{"GET", "Sec-Websocket-Version", "8", 426},
		{"GET", "Sec-Websocket-Version", "", 426},
		{"GET", "Sec-Websocket-Key", "", 400},
		{"GET", "Sec-Websocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg", 400},
		{"GET", "Sec-Websocket-Key", "MDEyMzQ1Njc4OWFiY2RlZjA=", 400},
	} {
		var body io.Reader
		switch tc.header {
		case "X-Body":
			body = strings.NewReader(tc.value)
		case "X-Chunks":
			body = io.NopCloser(strings.NewReader(tc.value))
		}
		req, err := http.NewRequest(tc.method, s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = good.Clone()
		req.Header.Set(tc.header, tc.value)
		if tc.value == "" {
			req.Header.Del(tc.header)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != tc.status {
			t.Errorf("%+v: answered %d", tc, res.StatusCode)
		}
		if tc.status == 101 {
			s.conn(t)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
