package hostile

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"hermes-mobile/test/e2e"
)

// guess tries a wrong token from an address that a proxy names. It returns the status of the upgrade, or 101 where it was let as far as hello.
func guess(t testing.TB, s *e2e.Server, headers string) int {
	t.Helper()
	c := dial(t, s, upgrade+headers+"\r\n")
	defer c.Close()
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	ok(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return resp.StatusCode
	}
	_, _ = c.Write([]byte(masked(ws.OpText, true, hello("not the token", "guesser"))))
	if code := closeCode(in); code != 1008 && code != 1013 {
		t.Errorf("a wrong token is closed with %d", code)
	}
	return resp.StatusCode
}

// Guessing of tokens from one address, from one network that changes its addresses, and from many networks: the first two are stopped, the last
// costs neither memory nor log, and phones elsewhere do not notice.
func TestGuesses(t *testing.T) {
	t.Parallel()
	s, p := start(t)
	before := s.Memory(t)
	for name, addr := range map[string]func(i int) string{
		"one address":             func(int) string { return "192.0.2.1" },
		"one address as IPv6":     func(i int) string { return []string{"::ffff:192.0.2.2", "192.0.2.2"}[i%2] },
		"one network":             func(i int) string { return fmt.Sprintf("2001:db8:1:1:%x::%x", i+1, i*7) },
		"with forged ones before": func(i int) string { return fmt.Sprintf("203.0.113.%d, 10.%d.0.1, 192.0.2.3", i, i) },
		"with ports":              func(i int) string { return fmt.Sprintf("192.0.2.4:%d", 1000+i) },
	} {
		blocked := false
		for i := range 14 {
			switch status := guess(t, s, "X-Forwarded-For: "+addr(i)+"\r\n"); {
			case status == http.StatusTooManyRequests:
				blocked = blocked || i >= 10
				if i < 10 {
					t.Errorf("%s is blocked after %d guesses", name, i)
				}
			case i >= 10:
				t.Errorf("%s may guess an %dth time", name, i+1)
			}
		}
		if !blocked {
			t.Errorf("%s is never blocked", name)
		}
	}
	for i := range scale(600, 20_000) {
		if status := guess(t, s, fmt.Sprintf("X-Forwarded-For: 2001:db8:%x:%x::1\r\n", 2+i/60_000, i%60_000)); status != http.StatusSwitchingProtocols {
			t.Fatalf("network %d gets %d", i, status)
		}
	}
	unharmed(t, s, p, before, 48<<20)
	quietLog(t, s)
}

// Headers of a peer that is no proxy of ours change nothing: neither who is counted, nor what is let in.
func TestForgedForwarding(t *testing.T) {
	t.Parallel()
	s, p := start(t, "MOBILE_TRUSTED_PROXIES=192.0.2.200")
	before := s.Memory(t)
	for _, headers := range []string{
		"X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-For: ::1\r\nX-Real-IP: 127.0.0.1\r\n", "Forwarded: for=127.0.0.1;host=localhost\r\n",
		"X-Forwarded-For: " + strings.Repeat("127.0.0.1,", 2000) + "127.0.0.1\r\n", strings.Repeat("X-Forwarded-For: 192.0.2.200\r\n", 500),
		"X-Forwarded-For: \x7f\xff, %00, ,,,, [::1, 1.2.3.4.5, 127.0.0.1%eth0\r\n", "X-Forwarded-Proto: https\r\nX-Forwarded-Host: localhost\r\n",
	} {
		for path, want := range map[string]int{"/metrics": 403, "/admin": 404, "/admin/api/session": 404, "/healthz": 200} {
			statuses, _ := answers(t, s, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"+headers+"\r\n")
			if len(statuses) != 1 || statuses[0] != want && statuses[0] != http.StatusBadRequest {
				t.Errorf("%s with %.60q: %v, want %d", path, headers, statuses, want)
			}
		}
	}
	// Nor does it help to look like a program on this machine, as who comes by a TCP forward does.
	for _, host := range []string{fmt.Sprintf("127.0.0.1:%d", s.Port), fmt.Sprintf("localhost:%d", s.Port), fmt.Sprintf("[::1]:%d", s.Port), "localhost"} {
		for path, want := range map[string][]int{"/metrics": {403}, "/admin/api/overview": {401, 404}, "/admin/api/doctor": {401, 404}, "/admin/enter?key=" + strings.Repeat("A", 26): {303, 404}} {
			statuses, body := answers(t, s, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\nX-Hermes-Mobile-Admin: 1\r\n\r\n")
			if len(statuses) != 1 || !slices.Contains(want, statuses[0]) || strings.Contains(body, s.Data) {
				t.Errorf("%s of %s: %v", path, host, statuses)
			}
		}
	}
	for i := range 10 { // whoever they say they are, they are all the peer
		guess(t, s, fmt.Sprintf("X-Forwarded-For: 198.51.100.%d\r\n", i))
	}
	if status := guess(t, s, "X-Forwarded-For: 198.51.100.99\r\n"); status != http.StatusTooManyRequests {
		t.Errorf("an eleventh guess gets %d", status)
	}
	p.Ask("still here", "You said: still here") // a connection that is open is not touched
	if now := s.Memory(t); now > before+32<<20 {
		t.Errorf("it took %.0f MiB", (now-before)/(1<<20))
	}
}
