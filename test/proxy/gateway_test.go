package proxy

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// A gateway on another machine dials in through the proxy: its messages, its files of 25 MiB, and the files of phones, which
// it fetches by an address on the proxy.
func TestGateway(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		f := newFront(t, kind, relayLine(kind))
		// Only the proxy's own address is trusted: by default that of this gateway would be, too.
		p := open(t, f, "relay", "MOBILE_PUBLIC_URL="+f.url(), "MOBILE_TRUSTED_PROXIES=127.0.0.1")
		home := ""
		if runtime.GOOS == "linux" {
			home = "127.0.0.70"
		}
		fetched := &paths{next: f.transport(home)}
		g := gateway.New(gateway.Config{URL: f.url(), ID: p.server.ID, Secret: p.server.Secret, Kind: true, Client: &http.Client{Transport: fetched}})
		t.Cleanup(g.Close)
		phone := p.phone("tel-1")

		phone.Ask("echo 1 hello", "reply 1 hello")

		mark := phone.Mark()
		phone.Say("file 2")
		got := e2e.Wait(phone, mark, "the file", func(f device.File) bool { return f.Caption == "file 2" })
		if got.Err != nil || gateway.SHA(got.Data) != gateway.SHA(gateway.FileOf("2")) {
			t.Errorf("the file of the gateway came damaged: %v", got.Err)
		}

		mark = phone.Mark()
		data := random(3 << 20)
		phone.Upload(device.FileOptions{Name: "up.bin", Mime: "application/octet-stream", Caption: "take 3", Data: data})
		phone.Final(mark, "what the gateway fetched", func(m device.Message) bool { return m.Text == "took 3 "+gateway.SHA(data) })
		if !fetched.has(http.MethodGet, "/relay/media/") {
			t.Error("the gateway did not fetch the file through the proxy")
		}

		if address, err := g.Upload("large.bin", random(25<<20)); err != nil || !strings.HasPrefix(address, f.url()) {
			t.Errorf("a file of 25 MiB: %q, %v", address, err)
		}

		if home == "" {
			return
		}
		const stranger = "127.0.0.71"
		outside := f.client(stranger)
		defer outside.CloseIdleConnections()
		if status, _ := fetch(t, outside, f.url()+"/relay", http.Header{"Authorization": {"Bearer wrong"}}); status != http.StatusUnauthorized {
			t.Errorf("a stranger at the gateway's door: %d", status)
		}
		var status struct {
			Relay struct {
				Gateways    []struct{ From string }
				LastRefusal struct{ From string }
			}
		}
		p.server.JSON(t, &status, "status")
		if r := status.Relay; len(r.Gateways) != 1 || r.Gateways[0].From != home || r.LastRefusal.From != stranger {
			t.Errorf("status shows other addresses: %+v", r)
		}
	})
}

// paths notes the requests that go by.
type paths struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen []string
}

func (p *paths) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.URL.Path)
	p.mu.Unlock()
	return p.next.RoundTrip(r)
}

// CloseIdleConnections is looked for by http.Client.
func (p *paths) CloseIdleConnections() {
	if c, ok := p.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (p *paths) has(method, prefix string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if strings.HasPrefix(s, method+" "+prefix) {
			return true
		}
	}
	return false
}

// Where no gateway dials in from outside, the recipes hide its door, however it is written.
func TestRelayHidden(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		p := open(t, newFront(t, kind), "relay")
		direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if resp, err := direct.Get(p.server.Base() + "/relay"); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("the server itself answers %v, %v", resp, err)
		}
		for _, path := range []string{"/relay", "/relay/", "/relay/media", "/relay/media/x", "//relay", "/%72elay", "/x/../relay", "/ws/../relay/media", "/relay?x=/"} {
			if resp, ok := p.front.get(path); ok || resp == nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %v", path, resp)
			}
		}
	})
}
