package proxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/test/e2e"
)

// A conversation as people have it: a streamed answer, a question card, pairing by the code of the QR picture.
func TestChat(t *testing.T) {
	every(t, func(t *testing.T, kind string) {
		f := newFront(t, kind)
		p := newPlace(t, f, "MOBILE_PUBLIC_URL="+f.url(), "MOBILE_ALLOW_ALL_USERS=")
		var invitation struct {
			Link, Address, Code string
			Local               bool
		}
		p.server.JSON(t, &invitation, "pair")
		if !strings.HasPrefix(invitation.Link, f.url()+"/#") || invitation.Address != "wss"+strings.TrimPrefix(f.url(), "https")+"/ws" || invitation.Local {
			t.Errorf("pair shows %+v, want addresses on %s", invitation, f.url())
		}
		phone := e2e.NewPhone(t, p.server, "tel-1", p.through, func(cfg *device.Config) {
			cfg.URL, cfg.Token, cfg.PairCode = invitation.Address, "", invitation.Code
		})
		phone.Online()
		if !phone.Status().Approved {
			t.Error("the phone that came with a code is not approved")
		}

		mark := phone.Mark()
		answer := phone.Ask("/demo stream 200", "w200")
		steps := 0
		for _, ev := range phone.Since(mark) {
			if m, ok := ev.(device.Message); ok && m.ID == answer.ID && !m.Final {
				steps++
			}
		}
		if steps == 0 {
			t.Error("the answer came without any step")
		}

		mark = phone.Mark()
		phone.Say("/demo approval")
		phone.Choose(phone.Card(mark, "exec_approval"), "once", "")
		phone.Final(mark, "what was decided", func(m device.Message) bool { return m.Text == "approval: once" })
	})
}

// Steps of a streamed answer come as what was added, to a page that the proxy's own address served.
func TestDelta(t *testing.T) {
	every(t, func(t *testing.T, kind string) {
		p := newPlace(t, newFront(t, kind))
		s := p.connect("", http.Header{"Origin": {p.front.url()}})
		s.send(object{"t": "hello", "token": p.server.Token, "device": object{"id": "page"}, "accept": []string{"delta"}})
		s.find("ready")
		s.send(object{"t": "text", "id": "m1", "text": "/demo stream 200"})
		appended := 0
		for {
			o := s.find("message", "error")
			if o["t"] == "error" {
				t.Fatalf("refused: %v", o)
			}
			if o["append"] != nil {
				appended++
			}
			if o["final"] == true {
				break
			}
		}
		if appended == 0 {
			t.Error("no step came as an addition")
		}
		if _, resp, err := p.upgrade("", http.Header{"Origin": {"https://evil.example"}}); err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("a foreign page: %v", err)
		}
	})
}

// The agent is silent for longer than the proxy waits for a quiet connection, and the phone does nothing either: the
// server's pings keep it. That limit is 35 seconds here, which is harder than the hour of nginx's recipe and its own
// default of a minute. Caddy has no such limit: there it is only seen that pings come through.
func TestSilence(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		f := newFront(t, kind)
		if kind == "nginx" {
			f.changed(swap("proxy_read_timeout 1h", "proxy_read_timeout 35s"), swap("proxy_send_timeout 1h", "proxy_send_timeout 35s"))
		}
		p := newPlace(t, f)
		var pings atomic.Int32
		s := p.hello("tel-1", "", nil, func(o *websocket.DialOptions) {
			o.OnPingReceived = func(context.Context, []byte) bool { pings.Add(1); return true }
		})
		const seconds = 45
		s.send(object{"t": "text", "id": "m1", "text": "/demo slow " + strconv.Itoa(seconds)})
		if text := s.final(); !strings.HasPrefix(text, "done after") {
			t.Errorf("the answer is %q", text)
		}
		if pings.Load() == 0 {
			t.Errorf("no ping came in a silence of %d s", seconds)
		}
	})
}
