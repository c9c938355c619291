package apiproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/loglimit"
	"hermes-mobile/internal/store"
)

// try logs in from an address and returns the status.
func (r *rig) try(addr, name, password string) int {
	r.t.Helper()
	r.addr = netip.MustParseAddr(addr)
	resp := r.client().send(r.t.Context(), "POST", "/auth/password-login", loginBody(name, password))
	defer resp.Body.Close()
	if (resp.StatusCode == 429) != (resp.Header.Get("Retry-After") != "") {
		r.t.Errorf("%d with Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	return resp.StatusCode
}

func TestLoginThrottled(t *testing.T) {
	r := newRig(t)
	for i := range guessesNetwork.Burst {
		if status := r.try("2001:db8::1", fmt.Sprint("x", i), "wrong"); status != 401 {
			t.Fatalf("try %d: %d", i, status)
		}
	}
	if r.try("2001:db8::2", "anna", password) != 429 || r.try("2001:db8:0:1::1", "anna", password) != 200 {
		t.Error("the limit of an address is not that of its network, or of more")
	}
	r.clock.pass(time.Minute)
	if r.try("2001:db8::1", "anna", password) != 200 {
		t.Error("the limit does not end")
	}
	for i := range guessesAccount.Burst {
		if status := r.try(fmt.Sprintf("192.0.%d.1", i), "bert", "wrong"); status != 401 {
			t.Fatalf("try %d: %d", i, status)
		}
	}
	if r.try("192.0.100.1", "BERT", password) != 429 || r.try("192.0.101.1", "anna", password) != 200 {
		t.Error("the limit of an account is none, or of more")
	}
	r.clock.pass(time.Minute)
	for i := range 3 { // right ones do not count
		if r.try(fmt.Sprintf("192.0.%d.1", 110+i), "bert", password) != 200 {
			t.Error("the limit of an account does not end")
		}
	}
}

// TestRightLoginsAreNoGuesses: logins with the right password don't count as guesses. They have a
// limit of their own, which affects no other user.
func TestRightLoginsAreNoGuesses(t *testing.T) {
	r := newRig(t)
	for i := range loginsAccount.Burst {
		if status := r.try("192.0.2.1", "anna", password); status != 200 {
			t.Fatalf("login %d: %d", i, status)
		}
	}
	if status := r.try("192.0.2.1", "anna", password); status != 429 {
		t.Errorf("one more: %d", status)
	}
	if status := r.try("192.0.2.1", "bert", password); status != 200 {
		t.Errorf("another user: %d", status)
	}
	for range guessesNetwork.Burst { // and between right ones there is as much room for wrong ones as before
		if status := r.try("192.0.2.1", "nobody", password); status != 401 {
			t.Errorf("a wrong one: %d", status)
		}
	}
	r.clock.pass(time.Minute)
	if status := r.try("192.0.2.1", "anna", password); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}

// TestGuessesOfManyNetworks: networks of one region share a limit, and so do all networks from
// which nobody has logged in. A network with a login isn't affected by the latter.
func TestGuessesOfManyNetworks(t *testing.T) {
	at := time.Now()
	g := newGuesses(func() time.Time { return at })
	home := netip.MustParseAddr("198.51.100.7")
	mine, wait := g.begin(home, "anna")
	if wait != 0 {
		t.Fatal(wait)
	}
	mine.right()
	allowed := func(n int, addr func(i int) string) (got int) {
		for i := range n {
			if a, wait := g.begin(netip.MustParseAddr(addr(i)), fmt.Sprint("made-up-", i)); wait == 0 {
				a.wrong()
				got++
			} else if wait > time.Minute {
				t.Errorf("it takes %v", wait)
			}
		}
		return got
	}
	if got := allowed(200, func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) }); got > guessesRegion.Burst || got < 30 {
		t.Errorf("%d guesses of a /48", got)
	}
	if got := allowed(200, func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }); got > guessesRegion.Burst || got < 30 {
		t.Errorf("%d guesses of a /24", got)
	}
	if got := allowed(1000, func(i int) string { return fmt.Sprintf("2001:db9:%x::1", i) }); got > guessesAll.Burst-60 {
		t.Errorf("%d guesses of many regions", got)
	}
	if _, wait := g.begin(home, "anna"); wait != 0 {
		t.Errorf("who was in before waits for %v", wait)
	}
	at = at.Add(time.Minute)
	if got := allowed(1000, func(i int) string { return fmt.Sprintf("2001:dba:%x::1", i) }); got == 0 || got > 60 {
		t.Errorf("%d guesses of many regions a minute later", got)
	}
}

// TestGuessesAreBounded: made-up addresses and names neither take memory nor push out a count.
func TestGuessesAreBounded(t *testing.T) {
	at := time.Now()
	g := newGuesses(func() time.Time { return at })
	for i := range guessesAccount.Burst {
		a, wait := g.begin(netip.MustParseAddr(fmt.Sprintf("192.0.%d.1", i)), "anna")
		if wait != 0 {
			t.Fatal(wait)
		}
		a.wrong()
	}
	for i := range 4 * maxGuessKeys {
		addr, name := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), strings.Repeat(fmt.Sprint("made-up-", i), 100)
		a, wait := g.begin(addr, name)
		switch {
		case wait > 0:
		case i%2 == 0:
			a.canceled()
		default:
			a.wrong()
		}
	}
	if n := g.networks.Len() + g.regions.Len() + g.accounts.Len() + g.logins.Len(); n > 4*guessesAll.Burst {
		t.Errorf("%d counts are kept", n)
	}
	if _, wait := g.begin(netip.MustParseAddr("203.0.113.9"), "anna"); wait == 0 {
		t.Error("the account's count is gone")
	}
}

// TestLoginQueue: as many passwords are worked on as leave half of the cores to others, a bounded
// number of logins waits for that, and more are sent away at once. Who waits gets in.
func TestLoginQueue(t *testing.T) {
	r := newRig(t)
	if n := cap(r.users.work); n != max(1, runtime.GOMAXPROCS(0)/2) {
		t.Errorf("%d passwords are worked on at a time", n)
	}
	inside := r.login("bert")
	for _, name := range []string{"carl", "dora"} {
		ok(t, r.users.Add(t.Context(), name, password))
	}
	for range cap(r.users.work) { // others are worked on
		r.users.work <- struct{}{}
	}
	type answer struct {
		status int
		after  string
	}
	answers := make(chan answer, 100)
	var wg sync.WaitGroup
	n := 0
	login := func() {
		n++
		from := header("X-Test-Address", fmt.Sprintf("198.51.%d.1", n))
		name := []string{"anna", "bert", "carl", "dora"}[n%4]
		wg.Go(func() {
			resp := r.client().send(t.Context(), "POST", "/auth/password-login", loginBody(name, password), from)
			defer resp.Body.Close()
			answers <- answer{resp.StatusCode, resp.Header.Get("Retry-After")}
		})
	}
	for range maxQueue {
		login()
	}
	until(t, "the queue to be full", func() bool { return r.users.queue.Load() == maxQueue })
	for range 20 {
		login()
		if a := <-answers; a.status != 429 || a.after == "" {
			t.Errorf("one more is answered with %+v", a)
		}
	}
	inside.want(200, "GET", "/api/auth/me", "")
	// Who goes away leaves a place.
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/auth/password-login", strings.NewReader(loginBody("anna", password)))
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	leave()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
	}
	for range cap(r.users.work) {
		<-r.users.work
	}
	wg.Wait()
	for range maxQueue {
		if a := <-answers; a.status != 200 {
			t.Errorf("who waited is answered with %+v", a)
		}
	}
	if n := r.users.queue.Load(); n != 0 {
		t.Errorf("%d wait still", n)
	}
	if n := r.counted("front_logins_total"); n != 1+maxQueue+20 {
		t.Errorf("%v logins were counted", n)
	}
}

// TestFloodLeavesFewLines: a flood of wrong logins writes a bounded number of lines to the log and
// one entry to the audit log.
func TestFloodLeavesFewLines(t *testing.T) {
	r := newRig(t)
	const flood = 150
	for i := range flood {
		if status := r.try(fmt.Sprintf("2001:db8:%x::1", i), "anna", "SECRET wrong"); status != 401 && status != 429 {
			t.Fatalf("%d", status)
		}
	}
	for range flood {
		r.try("192.0.2.1", "anna", "SECRET wrong")
	}
	if n := strings.Count(r.logged(), `msg="login rejected"`); n > loglimit.Burst || n == 0 {
		t.Errorf("%d lines:\n%s", n, r.logged())
	}
	if n := strings.Count(r.logged(), "addr=192.0.2.1\n"); n > loglimit.PerAddress {
		t.Errorf("%d lines about one address:\n%s", n, r.logged())
	}
	if strings.Contains(r.logged(), "SECRET") {
		t.Error("the log holds a password")
	}
	audit := func() []store.AuditEntry {
		list, err := r.store.Audit(t.Context(), store.AuditFilter{Action: "api_login.*"}, 100)
		ok(t, err)
		return list
	}
	if n := len(audit()); n != 0 {
		t.Errorf("%d entries already", n)
	}
	r.proxy.failures.flush()
	r.proxy.failures.flush()
	list := audit()
	if len(list) != 1 || list[0].Action != "api_login.failed" || list[0].Actor != "server" || list[0].Origin != "several networks" || !strings.HasPrefix(list[0].Detail, fmt.Sprint(2*flood, " failed")) {
		t.Errorf("%+v", list)
	}
	r.clock.pass(time.Hour)
	if status := r.try("192.0.2.77", "anna", "wrong"); status != 401 {
		t.Errorf("%d", status)
	}
	r.proxy.Close()
	if list = audit(); len(list) != 2 || list[0].Origin != "192.0.2.77/32" {
		t.Errorf("%+v", list)
	}
}
