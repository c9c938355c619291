package wsconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// cutConn is a peer whose bytes arrive in pieces of cut bytes. It reads everything.
type cutConn struct {
	in  *bytes.Reader
	cut int
	out bytes.Buffer
}

func (c *cutConn) Read(p []byte) (int, error)     { return c.in.Read(p[:min(len(p), c.cut)]) }
func (c *cutConn) Write(p []byte) (int, error)    { return c.out.Write(p) }
func (*cutConn) Close() error                     { return nil }
func (*cutConn) LocalAddr() net.Addr              { return nil }
func (*cutConn) RemoteAddr() net.Addr             { return nil }
func (*cutConn) SetDeadline(time.Time) error      { return nil }
func (*cutConn) SetReadDeadline(time.Time) error  { return nil }
func (*cutConn) SetWriteDeadline(time.Time) error { return nil }

// play passes bytes to a connection and returns the calls of its handler.
func play(t *testing.T, stream []byte, cut int) *recorder {
	nc := &cutConn{in: bytes.NewReader(stream), cut: cut}
	r := &recorder{}
	c := newConn(nc, nil, &Options{MaxMessage: 20_000})
	c.Serve(r)
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("does not end")
	}
	// The connection wrote only complete frames, and nothing after a close frame.
	for closed := false; nc.out.Len() > 0; {
		f, err := readFrame(&nc.out)
		if err != nil || closed {
			t.Fatalf("wrote odd bytes: %v, closed before: %v", err, closed)
		}
		closed = f.Header.OpCode == ws.OpClose
	}
	return r
}

// FuzzFrames checks that the calls of the handler do not depend on how the peer's bytes are split,
// and that Closed is called once.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(text("hello"))
	f.Add(slices.Concat(masked(ws.OpText, false, "a"), masked(ws.OpPing, true, "p"), masked(ws.OpContinuation, true, "b")))
	f.Add(slices.Concat(text(string(make([]byte, 9000))), masked(ws.OpClose, true, closeBody(1000, "bye")), text("late")))
	f.Add(text(string(make([]byte, 20_001))))
	f.Add([]byte{0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, stream []byte) {
		want := play(t, stream, len(stream)+1)
		for _, cut := range []int{1, 13, 4096} {
			got := play(t, stream, cut)
			if !slices.Equal(got.got, want.got) || got.big != want.big {
				t.Fatalf("cut %d: %q, %d too big; whole: %q, %d", cut, got.got, got.big, want.got, want.big)
			}
			if len(got.closed) != 1 || got.late || !errors.Is(got.closed[0], want.closed[0]) {
				t.Fatalf("cut %d: closed with %v; whole: %v", cut, got.closed, want.closed)
			}
		}
	})
}

// FuzzRest checks the same for a connection that may rest between any two pieces.
func FuzzRest(f *testing.F) {
	f.Add(text("hello"), uint16(1))
	f.Add(slices.Concat(masked(ws.OpPong, true, ""), masked(ws.OpText, false, "a"), masked(ws.OpPing, true, "p"), masked(ws.OpContinuation, true, "b")), uint16(3))
	f.Add(slices.Concat(text(string(make([]byte, 9000))), masked(ws.OpClose, true, closeBody(1000, "bye")), text("late")), uint16(2000))
	f.Add([]byte{0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5}, uint16(7))
	l, err := net.Listen("unix", filepath.Join(f.TempDir(), "s")) // TCP would run out of ports
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = l.Close() })
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		want := play(t, stream, len(stream)+1)
		peer, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		_ = peer.SetDeadline(time.Now().Add(patience))
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := &recorder{}
		c := newConn(nc, nil, &Options{MaxMessage: 20_000})
		c.Serve(got)
		step := max(int(cut), len(stream)/50+1)
		for i := 0; i < len(stream); i += step {
			c.rest()
			if _, err := peer.Write(stream[i:min(len(stream), i+step)]); err != nil {
				if isTimeout(err) {
					t.Fatal("nobody reads")
				}
				break // the connection has closed
			}
		}
		c.rest()
		_ = peer.(*net.UnixConn).CloseWrite()
		select {
		case <-c.Done():
		case <-time.After(patience):
			t.Fatal("does not end")
		}
		if !slices.Equal(got.got, want.got) || got.big != want.big {
			t.Fatalf("resting: %q, %d too big; else: %q, %d", got.got, got.big, want.got, want.big)
		}
		if len(got.closed) != 1 || got.late || !errors.Is(got.closed[0], want.closed[0]) {
			t.Fatalf("resting: closed with %v; else: %v", got.closed, want.closed)
		}
	})
}

// A frame that announces a large payload and delivers little uses little memory.
func TestAnnouncedSizeReservesNothing(t *testing.T) {
	h := []byte{0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4} // 16 MiB
	for _, brought := range []int{0, 10, 10_000, 100_000, 1_000_000} {
		in := bytes.NewReader(slices.Concat(h, make([]byte, brought)))
		c := newConn(&cutConn{in: in, cut: 5000}, nil, &Options{MaxMessage: 16 << 20})
		if err := c.readAll(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		held := 0
		if c.in.msg != nil {
			held = cap(c.in.msg.b)
		}
		if held > max(2*brought, largeBuffer) || brought <= smallBuffer && held > smallBuffer {
			t.Fatalf("%d bytes came, %d are held", brought, held)
		}
	}
}
