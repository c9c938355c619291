package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/internal/passhash"
)

// elsewhereHTTPS comes through a proxy on this machine that does TLS.
func elsewhereHTTPS(client string) []string {
	return []string{"X-Forwarded-For: " + client, "X-Forwarded-Proto: https", "Origin: https://agent.example"}
}

// login logs in from elsewhere and returns the cookie.
func (r *rig) login(client, token string) (*http.Cookie, *http.Response) {
	r.t.Helper()
	resp := r.ask(visit{host: "agent.example", method: http.MethodPost, path: "/admin/api/login", body: `{"token":"` + token + `"}`, headers: elsewhereHTTPS(client)})
	for _, c := range resp.Cookies() {
		return c, resp
	}
	return nil, resp
}

func TestOwnerLogin(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	page := visit{host: "agent.example", path: "/admin", headers: elsewhereHTTPS("192.0.2.1")}
	if resp := r.ask(page); resp.StatusCode != http.StatusOK {
		t.Errorf("the page with the login: %s", resp.Status)
	}
	overview := visit{host: "agent.example", path: "/admin/api/overview", headers: elsewhereHTTPS("192.0.2.1")}
	session := func() OwnerAccess {
		v := overview
		v.path = "/admin/api/session"
		return decode[OwnerAccess](t, r.ask(v))
	}
	if resp := r.ask(overview); resp.StatusCode != http.StatusUnauthorized || strings.Contains(text(t, resp), "1.2.3") {
		t.Errorf("without a login: %s", resp.Status)
	}
	if a := session(); a != (OwnerAccess{Access: "login", Token: true}) {
		t.Errorf("%+v", a)
	}
	for _, wrong := range []string{"", "x", adminSecret[1:], adminSecret + "3", mainToken} {
		if c, resp := r.login("192.0.2.1", wrong); c != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s", wrong, resp.Status)
		}
	}
	c, resp := r.login("192.0.2.1", adminSecret)
	if c == nil || c.Name != "__Host-hm_admin_"+r.server.addresses.port() || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*60*60 {
		t.Fatalf("%s: cookie %+v", resp.Status, c)
	}
	body := text(t, resp)
	if strings.Contains(body, c.Value) || strings.Contains(c.Value, adminSecret) {
		t.Error("the session is in the answer, or the token in the cookie")
	}
	var a OwnerAccess
	ok(t, json.Unmarshal([]byte(body), &a))
	own := pass{c, a.Page}
	overview = overview.with(own)
	if o := decode[Overview](t, r.ask(overview)); o.Status.Version != "1.2.3" {
		t.Errorf("%+v", o)
	}
	change := visit{host: "agent.example", method: http.MethodPost, path: "/admin/api/home/clear", body: "{}", headers: elsewhereHTTPS("192.0.2.1")}.with(own)
	if resp := r.ask(change); resp.StatusCode != http.StatusOK {
		t.Errorf("a change: %s", resp.Status)
	}
	change.headers = append(change.headers, "Origin: https://evil.example")
	if resp := r.ask(change); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a change by another site with the cookie: %s", resp.Status)
	}
	// The cookie under its other name, as plain http would have it, is worth nothing.
	renamed := overview
	renamed.cookie = &http.Cookie{Name: "hm_admin_" + r.server.addresses.port(), Value: c.Value}
	if resp := r.ask(renamed); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("renamed: %s", resp.Status)
	}
	out := r.ask(visit{host: "agent.example", method: http.MethodPost, path: "/admin/api/logout", body: "{}", headers: elsewhereHTTPS("192.0.2.1")}.with(own))
	if out.StatusCode != http.StatusOK || len(out.Cookies()) != 1 || out.Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %s %v", out.Status, out.Cookies())
	}
	if resp := r.ask(overview); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %s", resp.Status)
	}
	if strings.Contains(r.log.String(), adminSecret) {
		t.Error("the log holds the admin token")
	}
}

// Wrong admin tokens count with all others from the address; while it is blocked the right one is
// no use either.
func TestOwnerGuesses(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	for i := range 10 {
		if _, resp := r.login("192.0.2.7", "wrong-wrong-wrong"); resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: %s", i, resp.Status)
		}
	}
	for _, token := range []string{"wrong-wrong-wrong", adminSecret} {
		c, resp := r.login("192.0.2.7", token)
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != http.StatusTooManyRequests || c != nil || err != nil || after < 1 || after > 61 {
			t.Errorf("%s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	if resp := r.ask(visit{host: "agent.example", path: "/ws", headers: []string{"X-Forwarded-For: 192.0.2.7"}}); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a device from there: %s", resp.Status)
	}
	if c, resp := r.login("192.0.2.8", adminSecret); c == nil {
		t.Errorf("from another address: %s", resp.Status)
	}
}

// The admin token crosses a network unencrypted only where the owner has chosen that.
func TestOwnerLoginPlain(t *testing.T) {
	post := visit{peer: "192.0.2.1", host: "agent.example:8787", method: http.MethodPost, path: "/admin/api/login", body: `{"token":"` + adminSecret + `"}`}
	for name, tt := range map[string]struct {
		environ []string
		headers []string
		plain   bool
	}{
		"no public address":       {nil, nil, false},
		"an https address":        {[]string{"MOBILE_PUBLIC_URL=https://agent.example:8787"}, nil, false},
		"a client that pretends":  {nil, []string{"X-Forwarded-Proto: https"}, false},
		"plain by choice":         {[]string{"MOBILE_PUBLIC_URL=http://agent.example:8787"}, nil, true},
		"plain, and a false page": {[]string{"MOBILE_PUBLIC_URL=http://agent.example:8787"}, []string{"Origin: http://evil.example"}, false},
	} {
		r := start(t, append(tt.environ, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)...)
		v := post
		v.headers = tt.headers
		resp := r.ask(v)
		if !tt.plain {
			if resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
				t.Errorf("%s: %s %v", name, resp.Status, resp.Cookies())
			}
			continue
		}
		a := decode[OwnerAccess](t, resp)
		if a.Access != "session" || !a.Plain || a.Page == "" || len(resp.Cookies()) != 1 {
			t.Fatalf("%s: %+v", name, a)
		}
		c := resp.Cookies()[0]
		if c.Name != "hm_admin_"+r.server.addresses.port() || c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("cookie %+v", c)
		}
		if !strings.Contains(r.log.String(), "unencrypted") {
			t.Error("no warning")
		}
		if resp := r.ask(visit{peer: "192.0.2.1", host: "agent.example:8787", path: "/admin/api/overview"}.with(pass{c, a.Page})); resp.StatusCode != http.StatusOK {
			t.Errorf("after the login: %s", resp.Status)
		}
	}
}

// By real TLS, with the server's own certificate; the forwarding header makes it come from
// elsewhere.
func TestOwnerOverTLS(t *testing.T) {
	r := start(t, "MOBILE_TLS=self", "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	client, base := r.encrypted(), "https://"+r.server.Addr().String()
	do := func(method, path, body string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		ok(t, err)
		req.Header.Set(ownerHeader, "1")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", base)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		ok(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	if a := decode[OwnerAccess](t, do(http.MethodGet, "/admin/api/session", "")); a.Access != "login" {
		t.Errorf("%+v", a)
	}
	const away = "X-Forwarded-For: 192.0.2.1"
	if resp := do(http.MethodGet, "/admin/api/overview", "", away); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s", resp.Status)
	}
	resp := do(http.MethodPost, "/admin/api/login", `{"token":"`+adminSecret+`"}`, away)
	a := decode[OwnerAccess](t, resp)
	if a.Access != "session" || a.Plain || len(resp.Cookies()) != 1 {
		t.Fatalf("%+v", a)
	}
	c := resp.Cookies()[0]
	if c.Name != "__Host-hm_admin_"+r.server.addresses.port() || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %+v", c)
	}
	if resp := do(http.MethodGet, "/admin/api/overview", "", away, "Cookie: "+c.Name+"="+c.Value, ownerHeader+": "+a.Page); resp.StatusCode != http.StatusOK {
		t.Errorf("%s", resp.Status)
	}
}

// The token may be given as its hash; in clear it is not kept.
func TestAdminTokenAsHash(t *testing.T) {
	hash := passhash.New(passhash.Cost{Memory: 64, Passes: 1, Lanes: 1}, adminSecret).String()
	for name, setting := range map[string]string{"a hash": hash, "in clear": adminSecret} {
		r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+setting)
		for _, wrong := range []string{hash, "", adminSecret[1:]} {
			if c, resp := r.login("192.0.2.1", wrong); c != nil || resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %q gets %s", name, wrong, resp.Status)
			}
		}
		if c, resp := r.login("192.0.2.1", adminSecret); c == nil {
			t.Errorf("%s: %s", name, resp.Status)
		}
		if r.server.cfg.AdminToken != "" || r.server.sources.latest.Load().AdminToken != "" {
			t.Errorf("%s: the server keeps what the settings say", name)
		}
		ok(t, r.server.Reload(settings(t, r.data, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+setting)))
		if r.server.sources.latest.Load().AdminToken != "" {
			t.Errorf("%s: after a reload the server keeps what the settings say", name)
		}
	}
	// A hash cannot be compared with the tokens of devices before somebody logs in.
	r := start(t, "MOBILE_TOKEN="+adminSecret, "MOBILE_ADMIN_TOKEN="+hash)
	if c, resp := r.login("192.0.2.1", adminSecret); c != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("the token of devices opens the admin UI: %s", resp.Status)
	}
}

// A flood of logins is refused and not worked on: one at a time is checked, and few wait.
func TestAdminLoginFlood(t *testing.T) {
	a, err := newAdminToken(adminSecret)
	ok(t, err)
	yes := func() bool { return true }
	a.one <- struct{}{} // somebody's is being checked
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range maxTokenChecks {
		waiting.Go(func() {
			if _, err := a.check(ctx, adminSecret, yes, func() {}); !errors.Is(err, context.Canceled) {
				t.Errorf("one that waits: %v", err)
			}
		})
	}
	until(t, "those that wait", func() bool { return len(a.waiting) == maxTokenChecks })
	for range 100 {
		if _, err := a.check(t.Context(), adminSecret, yes, func() {}); !errors.Is(err, errChecking) {
			t.Fatalf("one more: %v", err)
		}
	}
	cancel()
	waiting.Wait()
	<-a.one
	if right, err := a.check(t.Context(), adminSecret, yes, func() {}); err != nil || !right {
		t.Errorf("afterwards: %t %v", right, err)
	}
	if right, err := a.check(t.Context(), adminSecret, func() bool { return false }, func() {}); err == nil || right {
		t.Errorf("from an address that was blocked meanwhile: %t %v", right, err)
	}
	none, err := newAdminToken("")
	ok(t, err)
	if right, _ := none.check(t.Context(), "", yes, func() {}); right {
		t.Error("where there is no token, none is right")
	}
}

// Many guesses at once from one address are no more than ten.
func TestAdminGuessesAtOnce(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+passhash.New(passhash.Cost{Memory: 64, Passes: 1, Lanes: 1}, adminSecret).String())
	var work sync.WaitGroup
	var mu sync.Mutex
	wrong := 0
	for range 100 {
		work.Go(func() {
			if _, resp := r.login("192.0.2.7", "wrong-wrong-wrong"); resp.StatusCode == http.StatusUnauthorized {
				mu.Lock()
				wrong++
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if wrong > 10 {
		t.Errorf("%d guesses were checked", wrong)
	}
}

// Without MOBILE_ADMIN=on the token is of no use, not even by https.
func TestAdminTokenWhereItIsOff(t *testing.T) {
	for _, mode := range []string{"local", "off"} {
		r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_ADMIN="+mode)
		if c, resp := r.login("192.0.2.1", adminSecret); c != nil || resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", mode, resp.Status)
		}
		own := "http://" + r.server.Addr().String()
		resp := r.ask(visit{method: http.MethodPost, path: "/admin/api/login", body: `{"token":"` + adminSecret + `"}`, headers: []string{"Origin: " + own}})
		if want := map[string]int{"local": http.StatusForbidden, "off": http.StatusNotFound}[mode]; resp.StatusCode != want || len(resp.Cookies()) > 0 {
			t.Errorf("%s, from here: %s", mode, resp.Status)
		}
	}
}
