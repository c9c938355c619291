package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

const patience = 20 * time.Second

// recording holds the frames that become examples, by name, as they were on the wire.
type recording struct {
	names  []string
	frames map[string][]byte
}

func (r *recording) keep(name string, raw []byte) {
	if name == "" || r.frames[name] != nil {
		return
	}
	r.names = append(r.names, name)
	r.frames[name] = raw
}

// object is a decoded frame.
type object map[string]any

// client is one connection of a device. It takes what it is sent and is asked for frames afterwards, so the order in
// which different frames arrive does not matter to the script.
type client struct {
	t    *testing.T
	rec  *recording
	ws   *websocket.Conn
	in   chan []byte
	raw  [][]byte
	seen []object
	used []bool
}

func (s *server) dial(rec *recording) *client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, s.address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	ws.SetReadLimit(frame.MaxFrame)
	c := &client{t: s.t, rec: rec, ws: ws, in: make(chan []byte, 1024)}
	go func() {
		defer close(c.in)
		for {
			_, raw, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			c.in <- raw
		}
	}()
	s.t.Cleanup(c.close)
	return c
}

func (c *client) close() { _ = c.ws.Close(websocket.StatusNormalClosure, "") }

// send sends a frame, and keeps it under a name where there is one.
func (c *client) send(name, format string, args ...any) {
	c.t.Helper()
	raw := []byte(fmt.Sprintf(format, args...))
	if !json.Valid(raw) {
		c.t.Fatalf("the script sends no JSON: %s", raw)
	}
	c.rec.keep(name, raw)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, raw); err != nil {
		c.t.Fatal(err)
	}
}

// expect waits for a frame with these members (pairs of name and value) that was not expected before, and keeps it under
// a name where there is one.
func (c *client) expect(name string, members ...any) object {
	c.t.Helper()
	timeout := time.After(patience)
	for i := 0; ; i++ {
		for i == len(c.seen) {
			select {
			case raw, ok := <-c.in:
				if !ok {
					c.t.Fatalf("the connection ended before %v came", members)
				}
				var o object
				if err := json.Unmarshal(raw, &o); err != nil {
					c.t.Fatalf("%v: %s", err, raw)
				}
				c.raw, c.seen, c.used = append(c.raw, raw), append(c.seen, o), append(c.used, false)
			case <-timeout:
				c.t.Fatalf("%v did not come", members)
			}
		}
		if !c.used[i] && c.seen[i].has(members) {
			c.used[i] = true
			c.rec.keep(name, c.raw[i])
			return c.seen[i]
		}
	}
}

func (o object) has(members []any) bool {
	for i := 0; i < len(members); i += 2 {
		v, there := o[members[i].(string)]
		switch want := members[i+1].(type) {
		case presence:
			if there != bool(want) {
				return false
			}
		case int:
			if v != float64(want) {
				return false
			}
		default:
			if v != want {
				return false
			}
		}
	}
	return true
}

// presence asks for a member that is there, or is not, whatever its value.
type presence bool

const (
	present presence = true
	absent  presence = false
)

func (o object) text(name string) string { s, _ := o[name].(string); return s }
