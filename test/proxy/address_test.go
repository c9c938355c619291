package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// Addresses of phones. All of 127.0.0.0/8 is this machine, and only Linux lets a program use it as it is.
const (
	guesser  = "127.0.0.66"
	forger   = "127.0.0.67"
	innocent = "127.0.0.68"
)

// Guesses count for the address of the phone that makes them, not for the proxy's, and whatever a phone writes into
// the headers itself changes nothing.
func TestClientAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs several loopback addresses, which only Linux has without being told")
	}
	every(t, func(t *testing.T, kind string) {
		// Only the proxy's own address is trusted: by default the addresses of these phones would be, too.
		p := newPlace(t, newFront(t, kind), "MOBILE_TRUSTED_PROXIES=127.0.0.1")
		for range 10 {
			p.guess(guesser, nil)
		}
		p.refused(guesser, nil)
		p.refused(guesser, forged(innocent)) // it does not become somebody else by saying so
		p.hello("tel-1", innocent, nil)

		for i := range 10 { // each time as somebody else, and once as the innocent one
			as := fmt.Sprintf("203.0.113.%d", i)
			if i == 0 {
				as = innocent
			}
			p.guess(forger, forged(as))
		}
		p.refused(forger, forged("203.0.113.99"))
		p.refused(forger, nil)
		p.hello("tel-2", innocent, nil)
	})
}

func forged(as string) http.Header {
	return http.Header{"X-Forwarded-For": {as}, "X-Real-Ip": {as}, "Forwarded": {"for=" + as}}
}

// guess sends a wrong token and waits for the end of the connection.
func (p *place) guess(from string, header http.Header) {
	p.t.Helper()
	s := p.connect(from, header)
	s.send(object{"t": "hello", "token": strings.Repeat("0", 64), "device": object{"id": "guess"}})
	for {
		if _, err := s.next(); err != nil {
			if code := websocket.CloseStatus(err); code != websocket.StatusPolicyViolation {
				p.t.Fatalf("a wrong token: closed with %d, %v", code, err)
			}
			return
		}
	}
}

// refused wants the address to be turned away, with the time to wait.
func (p *place) refused(from string, header http.Header) {
	p.t.Helper()
	_, resp, err := p.upgrade(from, header)
	if err == nil || resp == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		p.t.Errorf("%s after ten wrong tokens: %v", from, err)
	}
}

// What is for this machine alone, or for its owner, is not to be had through the proxy, although that is on this machine,
// whatever headers come along.
func TestNotThisMachine(t *testing.T) {
	every(t, func(t *testing.T, kind string) {
		p := newPlace(t, newFront(t, kind))
		phone := p.phone("tel-1")
		phone.Ask("/demo away 3600", "away") // a finding of /readyz
		phone.Agent(frame.Away)
		outside := p.front.client("")
		defer outside.CloseIdleConnections()

		for _, header := range []http.Header{nil, forged("127.0.0.1"), forged("")} {
			if status, body := fetch(t, outside, p.front.url()+"/metrics", header); status != http.StatusForbidden || strings.Contains(body, "hermes_mobile_") {
				t.Errorf("/metrics through the proxy: %d", status)
			}
			if text := findingText(t, outside, p.front.url(), header); text != "" {
				t.Errorf("/readyz says through the proxy: %q", text)
			}
			s := p.hello("sender", "", header)
			s.send(object{"t": "deliver", "id": "d1", "to": "tel-1", "text": "forged"})
			if o := s.find("error", "delivered"); o["code"] != "forbidden" {
				t.Errorf("a delivery through the proxy: %v", o)
			}
		}

		// Over the admin socket all of it is there.
		if status, body := fetch(t, p.server.Admin(), "http://admin/metrics", nil); status != http.StatusOK || !strings.Contains(body, "hermes_mobile_") {
			t.Errorf("/metrics over the socket: %d", status)
		}
		if findingText(t, p.server.Admin(), "http://admin", nil) == "" {
			t.Error("/readyz has no text over the socket")
		}
		if out, err := p.server.CLI(t.Context(), "deliver", "--to", "tel-1", "--text", "from this machine"); err != nil {
			t.Errorf("a delivery from this machine: %v\n%s", err, out)
		}
	})
}

func fetch(t *testing.T, client *http.Client, address string, header http.Header) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// findingText is what /readyz says of the agent that is away. The finding itself must be there.
func findingText(t *testing.T, client *http.Client, base string, header http.Header) string {
	t.Helper()
	_, body := fetch(t, client, base+"/readyz", header)
	var health struct {
		Findings []struct{ Code, Text string }
	}
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		t.Fatalf("/readyz: %v in %q", err, body)
	}
	for _, f := range health.Findings {
		if f.Code == "agent_away" {
			return f.Text
		}
	}
	t.Fatalf("/readyz does not say that the agent is away: %s", body)
	return ""
}
