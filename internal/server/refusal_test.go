package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// Requests that are turned away are in the log with address and reason, without what was in the address.
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
	for _, want := range []string{"addr=192.0.2.1 status=400", "addr=192.0.2.2 status=403", "addr=192.0.2.3 status=429"} {
		if n := strings.Count(r.log.String(), `level=INFO msg="a connection was turned away" `+want+" why="); n != 1 {
			t.Errorf("%s stands %d times in the log", want, n)
		}
	}
}

// However many come, the log grows by a few lines a minute, and says what it left out.
func TestRefusalsAreBounded(t *testing.T) {
	out, now := &log{}, time.Unix(1_800_000_000, 0)
	l := newRefusalLog(slog.New(slog.NewTextHandler(out, nil)), func() time.Time { return now })
	const minutes, each = 3, 1000
	for range minutes {
		for i := range each {
			addr := netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i))
			for range 3 {
				l.note(addr, http.StatusForbidden, "why "+strings.Repeat("and why ", 4000))
			}
		}
		now = now.Add(refusalsEvery)
	}
	l.note(netip.MustParseAddr("192.0.2.1"), http.StatusForbidden, "why")
	lines := strings.Count(out.String(), "\n")
	if n := len(out.String()) / lines; n > 2*maxWhy {
		t.Errorf("a line has %d bytes", n)
	}
	if want := minutes*(maxRefusals+1) + 1; lines != want {
		t.Errorf("%d lines, want %d", lines, want)
	}
	if n := strings.Count(out.String(), fmt.Sprint("left_out=", 3*each-maxRefusals)); n != minutes {
		t.Errorf("what was left out is told %d times, want %d", n, minutes)
	}
	if len(l.seen) != 1 {
		t.Errorf("%d refusals are remembered", len(l.seen))
	}
}
