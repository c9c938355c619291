package traps

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
)

// lossy is a connection that takes everything and loses what comes back after the upgrade.
type lossy struct {
	net.Conn
	reads atomic.Int64
}

func (c *lossy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.reads.Add(1) > 1 && err == nil {
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// A phone is paired over a network that loses the answer with its token, twice: the app tries again by itself and gets in.
// The code is then used up: for another phone at once, for this one when it has come with its own token.
func TestPairedOverABadLink(t *testing.T) {
	t.Parallel()
	s := start(t, "MOBILE_ALLOW_ALL_USERS=")
	g := hello(t, config(s, ""))
	var inv struct {
		Code string `json:"code"`
	}
	s.JSON(t, &inv, "pair")
	var dials atomic.Int64
	pair := func(c *device.Config) {
		c.Token, c.PairCode = "", inv.Code
		c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, addr)
			if err == nil && dials.Add(1) <= 2 {
				conn = &lossy{Conn: conn}
			}
			return conn, err
		}
	}
	p := e2e.NewPhone(t, s, "tel", pair)
	p.Online()
	if n := dials.Load(); n != 3 {
		t.Errorf("it took %d connections, want 3", n)
	}
	p.Say("hello")
	ok(t, g.Turn(soon(t), take(t, g, "hello"), "you are in"))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "you are in" })
	refused := func(id string) {
		t.Helper()
		c := dial(t, s)
		c.send(&frame.Hello{Pair: inv.Code, Device: frame.Device{ID: id}})
		if e := find[*frame.Error](c); e.Code != frame.AuthFailed {
			t.Errorf("%s with the code gets %s", id, e.Code)
		}
	}
	refused("another")
	p.Leave()
	p.Return(s, func(c *device.Config) { c.Token = "" }) // with the token that it kept
	p.Online()
	refused("tel")
	var e *frame.Error
	if err := p.Status().Err; errors.As(err, &e) {
		t.Errorf("the phone was refused: %v", e)
	}
}
