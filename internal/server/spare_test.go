package server

import (
	"errors"
	"net"
	"testing"
)

// No more connections are taken than there is room for; the next one is when one has ended, once for each end, and the end of the listener
// does not wait for room.
func TestConnectionsSpareFiles(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	l := spare(inner, 6) // half of it
	accepted, ended := make(chan net.Conn), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 5 {
		rawDial(t, inner.Addr().String(), "")
	}
	var open []net.Conn
	for range 3 {
		open = append(open, <-accepted)
	}
	select {
	case <-accepted:
		t.Fatal("more than there is room for")
	default:
	}
	ok(t, open[0].Close())
	_ = open[0].Close() // gives no room a second time
	open = append(open[1:], <-accepted)
	if n := len(l.(*sparing).room); n != 3 {
		t.Errorf("%d of 3 are taken", n)
	}
	ok(t, l.Close())
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the end of the listener: %v", err)
	}
	for _, c := range open {
		_ = c.Close()
	}
	if n := len(l.(*sparing).room); n != 0 {
		t.Errorf("%d are taken", n)
	}
}
