package proxy

import (
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/test/e2e"
)

// A reload of the proxy leaves the phones that are connected alone.
func TestReloadKeeps(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		p := newPlace(t, newFront(t, kind))
		phone := p.phone("tel-1")
		mark, since := phone.Mark(), phone.Status().Since
		id := phone.Say("/demo stream 200")
		p.front.reload()
		phone.Answered(mark, id)
		phone.Ask("after it", "You said: after it")
		if s := phone.Status(); s.State != device.Online || !s.Since.Equal(since) {
			t.Errorf("the phone was cut, and is %s since %s", s.State, s.Since)
		}
		once(t, phone, mark, 2)
		p.phone("tel-2") // new ones come in by the new settings
	})
}

// A reload that does cut the phone, in the middle of an answer: it comes back by itself, and nothing is lost nor doubled.
func TestReloadCuts(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		f := newFront(t, kind)
		if kind == "caddy" {
			f.changed(without("stream_close_delay"))
		} else {
			f.main = "worker_shutdown_timeout 1s;"
		}
		p := newPlace(t, f)
		phone := p.phone("tel-1")
		mark, since := phone.Mark(), phone.Status().Since
		id := phone.Say("/demo stream 400")
		p.front.reload()
		e2e.Wait(phone, mark, "the cut", func(s device.StatusChanged) bool { return s.State != device.Online || s.Since.After(since) })
		phone.Online()
		if m := phone.Answered(mark, id); m.Interrupted || !strings.HasSuffix(m.Text, "w400") {
			t.Errorf("the answer that was cut ends as %+v", m)
		}
		phone.Ask("after it", "You said: after it")
		once(t, phone, mark, 2)
	})
}

// The proxy is away for a while. What was said meanwhile on both sides arrives, once.
func TestProxyRestart(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		p := newPlace(t, newFront(t, kind))
		phone := p.phone("tel-1")
		mark := phone.Mark()
		p.front.stop()
		e2e.Wait(phone, mark, "the cut", func(s device.StatusChanged) bool { return s.State == device.Waiting })
		out := phone.Submit("said without a proxy")
		if text, err := p.server.CLI(t.Context(), "deliver", "--to", "tel-1", "--text", "kept for you"); err != nil {
			t.Fatalf("deliver: %v\n%s", err, text)
		}
		p.front.start(p.server)
		phone.Online()
		phone.Receipt(out)
		phone.Answered(mark, out.ID)
		phone.Final(mark, "the delivery", func(m device.Message) bool { return m.Text == "kept for you" })
		once(t, phone, mark, 2)
	})
}

// The server dies behind a proxy that goes on: the phone takes the proxy's page of error for what it is and tries again,
// and the turn that was cut gets its end.
func TestServerRestart(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		p := newPlace(t, newFront(t, kind))
		phone := p.phone("tel-1")
		mark := phone.Mark()
		id := phone.Say("/demo slow 2")
		p.server.Kill()
		e2e.Wait(phone, mark, "the proxy's 502", func(s device.StatusChanged) bool {
			if s.State == device.NoAccess {
				t.Fatalf("the phone gave up: %v", s.Err)
			}
			return s.Err != nil && strings.Contains(s.Err.Error(), "502")
		})
		out := phone.Submit("said without a server")
		p.server.Start()
		phone.Online()
		phone.Answered(mark, id)
		phone.Receipt(out)
		phone.Answered(mark, out.ID)
		once(t, phone, mark, 2)
	})
}

// once wants so many finished messages from a place on, each with an id of its own.
func once(t *testing.T, phone *e2e.Phone, mark, want int) {
	t.Helper()
	finals := phone.Finals(mark)
	seen := map[string]bool{}
	for _, m := range finals {
		if seen[m.ID] {
			t.Errorf("%q came twice", m.Text)
		}
		seen[m.ID] = true
	}
	if len(finals) != want {
		t.Errorf("%d finished messages came, not %d: %+v", len(finals), want, finals)
	}
}
