package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/loglimit"
)

// Requests that are rejected are in the log with address and reason, without what was in the
// address. One address that goes on does not fill it.
func TestRefusalsAreLogged(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	for path, headers := range map[string][]string{
		"/ws?token=" + mainToken: {"X-Forwarded-For: 192.0.2.1"},
		"/ws":                    {"X-Forwarded-For: 192.0.2.2", "Origin: https://evil.example"},
	} {
		if code, _ := r.get(path, headers...); code != http.StatusBadRequest && code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
	}
	for range 10 {
		_ = r.dial("guess", otherToken, "X-Forwarded-For: 192.0.2.3").closed()
	}
	for range 50 {
		if code, _ := r.get("/ws", "X-Forwarded-For: 192.0.2.3"); code != http.StatusTooManyRequests {
			t.Fatalf("after ten wrong tokens: %d", code)
		}
	}
	for want, most := range map[string]int{"addr=192.0.2.1 status=400": 1, "addr=192.0.2.2 status=403": 1, "addr=192.0.2.3 status=429": 2 * loglimit.PerAddress} {
		if n := strings.Count(r.log.String(), `level=WARN msg="request rejected" `+want+" reason="); n < 1 || n > most {
			t.Errorf("%s stands %d times in the log", want, n)
		}
	}
}

// What a request was rejected for may quote what was sent.
func TestReasonsAreShort(t *testing.T) {
	out := &log{}
	(&requestFilter{log: slog.New(slog.NewTextHandler(out, nil))}).note(netip.MustParseAddr("192.0.2.1"), http.StatusForbidden, "why "+strings.Repeat("and why ", 4000))
	if n := len(out.String()); n > 2*maxWhy {
		t.Errorf("the line has %d bytes", n)
	}
}

// Strangers of every kind, each of another address: no message is logged more often than the bound,
// at any level.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	plain := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_AGENT=relay", "MOBILE_RELAY_ID=gw", "MOBILE_RELAY_SECRET="+strings.Repeat("3", 64),
		"MOBILE_ADMIN_TOKEN="+strings.Repeat("4", 64), "MOBILE_PUSH=on", "MOBILE_PUSH_CONTACT=mailto:me@example.com", "MOBILE_PUSH_ACTIONS=yes")
	encrypted := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_TLS=self")
	const many = 2 * loglimit.Burst
	from := func(i int) string { return fmt.Sprintf("X-Forwarded-For: 198.51.%d.%d", i/250, i%250) }
	raw := func(r *rig, text string) {
		c, err := net.Dial("tcp", r.server.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c) // until the server closes
	}
	post := func(path, headers string, i int) {
		const body = `{"token":"x"}`
		raw(plain, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", path, from(i), len(body), headers, body))
	}
	for name, flood := range map[string]func(i int){
		"tokens in the address":  func(i int) { plain.get("/ws?token=x", from(i)) },
		"pages of other origins": func(i int) { plain.get("/ws", from(i), "Origin: https://evil.example") },
		"no upgrade":             func(i int) { plain.get("/ws", from(i)) },
		"wrong tokens":           func(i int) { _ = plain.dial(fmt.Sprint("d", i), otherToken, from(i)).closed() },
		"wrong bearers":          func(i int) { plain.get("/relay", from(i), "Authorization: Bearer x") },
		"unknown files":          func(i int) { plain.get("/media/x", from(i)) },
		"admin logins":           func(i int) { post("/admin/api/login", "X-Forwarded-Proto: https\r\nX-Hermes-Mobile-Admin: 1\r\n", i) },
		"push actions":           func(i int) { post("/push/action", "", i) },
		"no HTTP":                func(int) { raw(plain, "\x00\x01\x02\r\n\r\n") },
		"lengths that clash":     func(int) { raw(plain, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n") },
		"no TLS":                 func(int) { raw(encrypted, "\x16\x03\x01\x00\x05hello") },
	} {
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for i := worker; i < many; i += 8 {
					flood(i)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			t.Fatalf("after %s", name)
		}
	}
	message := regexp.MustCompile(`msg=("(?:[^"\\]|\\.)*"|\S+)`)
	counts := map[string]int{}
	for line := range strings.Lines(plain.log.String() + encrypted.log.String()) {
		counts[message.FindString(line)]++
	}
	for text, n := range counts {
		if n > loglimit.Burst+3*loglimit.PerMinute { // the floods take less than three minutes
			t.Errorf("%d lines with %s", n, text)
		}
	}
	for _, want := range []string{`msg="request rejected"`, `msg="device rejected"`, `msg="gateway rejected"`, `msg="http server"`} {
		if counts[want] < loglimit.Burst { // or the flood was none
			t.Errorf("only %d lines with %s: %v", counts[want], want, counts)
		}
	}
}
