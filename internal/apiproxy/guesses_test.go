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

	"hermes-mobile/internal/store"
)

// try logs in from an address, and returns the status.
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
	for i := range int(guessesNetwork.size) {
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
	for i := range int(guessesAccount.size) {
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

// TestRightLoginsAreNoGuesses: a script that logs in again and again is not taken for one that guesses, up to what one account
// may have; it takes nothing from another.
func TestRightLoginsAreNoGuesses(t *testing.T) {
	r := newRig(t)
	for i := range int(loginsAccount.size) {
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
	for range int(guessesNetwork.size) { // and between right ones there is as much room for wrong ones as before
		if status := r.try("192.0.2.1", "nobody", password); status != 401 {
			t.Errorf("a wrong one: %d", status)
		}
	}
	r.clock.pass(time.Minute)
	if status := r.try("192.0.2.1", "anna", password); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}

// TestGuessesOfManyNetworks: whoever has many networks shares a count with who is near, and all who were never in share one. Where
// somebody has logged in, one may log in again all the same.
func TestGuessesOfManyNetworks(t *testing.T) {
	at := time.Now()
	g := newGuesses(func() time.Time { return at })
	home := netip.MustParseAddr("198.51.100.7")
	mine, wait := g.begin(home, "anna")
	if wait != 0 {
		t.Fatal(wait)
	}
	g.right(mine)
	allowed := func(n int, addr func(i int) string) (got int) {
		for i := range n {
			if _, wait := g.begin(netip.MustParseAddr(addr(i)), fmt.Sprint("made-up-", i)); wait == 0 {
				got++
			} else if wait > time.Minute {
				t.Errorf("it takes %v", wait)
			}
		}
		return got
	}
	if got := allowed(200, func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) }); got > int(guessesRegion.size) || got < 30 {
		t.Errorf("%d guesses of a /48", got)
	}
	if got := allowed(200, func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }); got > int(guessesRegion.size) || got < 30 {
		t.Errorf("%d guesses of a /24", got)
	}
	if got := allowed(1000, func(i int) string { return fmt.Sprintf("2001:db9:%x::1", i) }); got > int(guessesAll.size)-60 {
		t.Errorf("%d guesses of many regions", got)
	}
	if _, wait := g.begin(home, "anna"); wait != 0 {
		t.Errorf("who was in before waits for %v", wait)
	}
	at = at.Add(time.Minute)
	if got := allowed(1000, func(i int) string { return fmt.Sprintf("2001:dba:%x::1", i) }); got == 0 || got > int(guessesAll.perMinute) {
		t.Errorf("%d guesses of many regions a minute later", got)
	}
}

// TestGuessesAreBounded: however many addresses and names come, what is kept is the same, and none gets free of its count.
func TestGuessesAreBounded(t *testing.T) {
	at := time.Now()
	g := newGuesses(func() time.Time { return at })
	for i := range int(guessesAccount.size) {
		if _, wait := g.begin(netip.MustParseAddr(fmt.Sprintf("192.0.%d.1", i)), "anna"); wait != 0 {
			t.Fatal(wait)
		}
	}
	for i := range 4 * guessSlots {
		tried, wait := g.begin(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), fmt.Sprint("made-up-", i))
		if wait == 0 {
			g.cancel(tried)
		}
	}
	if len(g.networks) != guessSlots || len(g.accounts) != guessSlots || len(g.regions) != guessSlots || len(g.logins) != guessSlots || len(g.known) != guessSlots {
		t.Error("there are other numbers of counts")
	}
	if _, wait := g.begin(netip.MustParseAddr("203.0.113.9"), "anna"); wait == 0 {
		t.Error("the account's count is gone")
	}
}

// TestLoginQueue: as many passwords are worked on as leave half of the cores to others, a bounded number of logins waits for that,
// and more are sent away at once. Who waits gets in.
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

// TestFloodLeavesFewLines: a flood of wrong logins writes some lines a minute to the log and one entry to the audit log.
func TestFloodLeavesFewLines(t *testing.T) {
	r := newRig(t)
	const flood = 150
	for i := range flood {
		if status := r.try(fmt.Sprintf("2001:db8:%x::1", i), "anna", "SECRET wrong"); status != 401 && status != 429 {
			t.Fatalf("%d", status)
		}
	}
	for range 50 {
		r.front.failures.say(0, "login rejected")
	}
	lines := func() int { return strings.Count(r.logged(), "\n") }
	if n := lines(); n > maxLines || n == 0 {
		t.Errorf("%d lines:\n%s", n, r.logged())
	}
	r.clock.pass(linesEvery)
	before := lines()
	r.front.failures.say(0, "login rejected")
	if n := lines(); n != before+1 || !strings.Contains(r.logged(), "lines_left_out=") {
		t.Errorf("a minute later:\n%s", r.logged())
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
	r.front.failures.flush()
	r.front.failures.flush()
	list := audit()
	if len(list) != 1 || list[0].Action != "api_login.failed" || list[0].Actor != "server" || list[0].Origin != "several networks" || !strings.HasPrefix(list[0].Detail, fmt.Sprint(flood, " failed")) {
		t.Errorf("%+v", list)
	}
	r.clock.pass(time.Hour)
	if status := r.try("192.0.2.77", "anna", "wrong"); status != 401 {
		t.Errorf("%d", status)
	}
	r.front.Close()
	if list = audit(); len(list) != 2 || list[0].Origin != "192.0.2.77/32" {
		t.Errorf("%+v", list)
	}
}
