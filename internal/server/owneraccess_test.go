package server

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
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

func TestOwnerHere(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	_, port, _ := strings.Cut(r.server.Addr().String(), ":")
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "LOCALHOST", "[::1]:" + port, "127.1.2.3"} {
		resp := r.ask(visit{host: host, path: "/admin"})
		csp := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Cache-Control") != "no-store" || !strings.Contains(csp, "default-src 'none'; script-src 'self'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(text(t, resp), "assets/admin-") {
			t.Errorf("%s: %s %v", host, resp.Status, resp.Header)
		}
		if a := decode[OwnerAccess](t, r.ask(visit{host: host, path: "/admin/api/session"})); a != (OwnerAccess{Access: "here"}) {
			t.Errorf("%s: %+v", host, a)
		}
	}
	// Over the network, too.
	if code, _ := r.get("/admin"); code != http.StatusOK {
		t.Errorf("the page is answered with %d", code)
	}
	if code, body := r.get("/admin/api/overview", ownerHeader+": 1"); code != http.StatusOK || !strings.Contains(body, `"version":"1.2.3"`) {
		t.Errorf("%d %s", code, body)
	}
	resp := r.ask(visit{path: "/admin/api/overview"})
	if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", resp.Header)
	}
	for _, name := range r.server.page.Paths() {
		if strings.HasPrefix(name, "/admin") {
			t.Errorf("everybody is shown %s", name)
		}
	}
}

// Without an admin token there is nothing for anybody who is not on this machine, and not even a sign of it.
func TestOwnerIsHidden(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN=")
	unknown := text(t, r.ask(visit{path: "/nothing"}))
	for name, v := range map[string]visit{
		"another machine":               {peer: "192.0.2.9"},
		"another machine, named local":  {peer: "192.0.2.9", host: "localhost"},
		"another machine that pretends": {peer: "192.0.2.9", headers: []string{"X-Forwarded-For: 127.0.0.1"}},
		"another machine by https":      {peer: "2001:db8::1", https: true},
		"behind a proxy here":           {headers: []string{"X-Forwarded-For: 192.0.2.9"}},
		"behind a proxy, pretending":    {headers: []string{"X-Forwarded-For: 127.0.0.1"}},
		"behind a proxy, RFC 7239":      {headers: []string{"Forwarded: for=127.0.0.1"}},
		"behind a proxy, X-Real-IP":     {headers: []string{"X-Real-IP: 127.0.0.1"}},
		"behind a proxy that says Via":  {headers: []string{"Via: 1.1 a"}},
		"a name that points here":       {host: "evil.example"},
		"a name that begins like it":    {host: "localhost.evil.example:8787"},
		"a name that ends like it":      {host: "127.0.0.1.evil.example"},
		"the network address from here": {host: "192.168.1.5:8787"},
		"no name":                       {host: ":8787"},
	} {
		for _, v.path = range []string{"/admin", "/admin/", "/admin/api/session", "/admin/api/login", "/admin/api/overview", "/admin/api/nothing"} {
			for _, v.method = range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
				v.body = `{"token":""}`
				if resp := r.ask(v); resp.StatusCode != http.StatusNotFound || text(t, resp) != unknown || resp.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s: %s %s is answered with %s", name, v.method, v.path, resp.Status)
				}
			}
		}
	}
	// HTTP/1.0 is not what a browser speaks, but a proxy that was never told more.
	req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/admin", nil)
	req.RemoteAddr, req.Proto, req.ProtoMajor, req.ProtoMinor = "127.0.0.1:5", "HTTP/1.0", 1, 0
	w := httptest.NewRecorder()
	if r.server.handler().ServeHTTP(w, req); w.Code != http.StatusNotFound {
		t.Errorf("HTTP/1.0: %d", w.Code)
	}
}

// A page of another site in the owner's browser can neither read nor change anything.
func TestOwnerChangesOnlyFromTheOwnPage(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.connect("tel-1", mainToken)
	own := "http://" + r.server.Addr().String()
	for name, headers := range map[string][]string{
		"another site":           {"Origin: https://evil.example"},
		"another port":           {"Origin: http://127.0.0.1:1"},
		"another name of here":   {"Origin: " + strings.Replace(own, "127.0.0.1", "localhost", 1)},
		"https for http":         {"Origin: https" + strings.TrimPrefix(own, "http")},
		"a sandbox":              {"Origin: null"},
		"no origin":              {"Origin: -"},
		"a form":                 {"Content-Type: text/plain"},
		"a form that says so":    {"Content-Type: application/x-www-form-urlencoded"},
		"no type":                {"Content-Type: -"},
		"without our header":     {ownerHeader + ": -"},
		"JSON as another's type": {"Content-Type: text/plain; application/json"},
	} {
		v := visit{method: http.MethodPost, path: "/admin/api/devices/rename", body: `{"id":"tel-1","name":"Mallory"}`, headers: headers}
		if resp := r.ask(v); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	if resp := r.ask(visit{path: "/admin/api/overview", headers: []string{ownerHeader + ": -"}}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("read without our header: %s", resp.Status)
	}
	if resp := r.ask(visit{method: http.MethodOptions, path: "/admin/api/overview", headers: []string{"Origin: https://evil.example", ownerHeader + ": -"}}); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another origin is let in")
	}
	if o := decode[Overview](t, r.ask(visit{path: "/admin/api/overview"})); o.Devices[0].Name == "Mallory" {
		t.Error("it was changed all the same")
	}
	if resp := r.ask(visit{method: http.MethodPost, path: "/admin/api/devices/rename", body: `{"id":"tel-1","name":"Anna"}`}); resp.StatusCode != http.StatusOK {
		t.Errorf("from the own page: %s", resp.Status)
	}
}

func TestOwnerLogin(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminToken)
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
	if a := session(); a != (OwnerAccess{Access: "login"}) {
		t.Errorf("%+v", a)
	}
	for _, wrong := range []string{"", "x", adminToken[1:], adminToken + "3", mainToken} {
		if c, resp := r.login("192.0.2.1", wrong); c != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s", wrong, resp.Status)
		}
	}
	c, resp := r.login("192.0.2.1", adminToken)
	if c == nil || c.Name != "__Host-hm_admin" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*60*60 {
		t.Fatalf("%s: cookie %+v", resp.Status, c)
	}
	if strings.Contains(text(t, resp), c.Value) || strings.Contains(c.Value, adminToken) {
		t.Error("the session is in the answer, or the token in the cookie")
	}
	overview.cookie = c
	if o := decode[Overview](t, r.ask(overview)); o.Status.Version != "1.2.3" {
		t.Errorf("%+v", o)
	}
	change := visit{host: "agent.example", method: http.MethodPost, path: "/admin/api/home/clear", body: "{}", headers: elsewhereHTTPS("192.0.2.1"), cookie: c}
	if resp := r.ask(change); resp.StatusCode != http.StatusOK {
		t.Errorf("a change: %s", resp.Status)
	}
	change.headers = append(change.headers, "Origin: https://evil.example")
	if resp := r.ask(change); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a change by another site with the cookie: %s", resp.Status)
	}
	// The cookie under its other name, as plain http would have it, is worth nothing.
	renamed := overview
	renamed.cookie = &http.Cookie{Name: "hm_admin", Value: c.Value}
	if resp := r.ask(renamed); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("renamed: %s", resp.Status)
	}
	out := r.ask(visit{host: "agent.example", method: http.MethodPost, path: "/admin/api/logout", body: "{}", headers: elsewhereHTTPS("192.0.2.1"), cookie: c})
	if out.StatusCode != http.StatusOK || len(out.Cookies()) != 1 || out.Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %s %v", out.Status, out.Cookies())
	}
	if resp := r.ask(overview); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %s", resp.Status)
	}
	if strings.Contains(r.log.String(), adminToken) {
		t.Error("the log holds the admin token")
	}
}

// Wrong admin tokens count with all others from the address; while it is blocked the right one is no use either.
func TestOwnerGuesses(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminToken)
	for i := range 10 {
		if _, resp := r.login("192.0.2.7", "wrong-wrong-wrong"); resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: %s", i, resp.Status)
		}
	}
	for _, token := range []string{"wrong-wrong-wrong", adminToken} {
		c, resp := r.login("192.0.2.7", token)
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != http.StatusTooManyRequests || c != nil || err != nil || after < 1 || after > 61 {
			t.Errorf("%s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	if resp := r.ask(visit{host: "agent.example", path: "/ws", headers: []string{"X-Forwarded-For: 192.0.2.7"}}); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a device from there: %s", resp.Status)
	}
	if c, resp := r.login("192.0.2.8", adminToken); c == nil {
		t.Errorf("from another address: %s", resp.Status)
	}
}

func TestOwnerSessionEnds(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminToken)
	now := time.Now()
	r.server.owners = newOwnerSessions(func() time.Time { return now })
	c, _ := r.login("192.0.2.1", adminToken)
	overview := visit{host: "agent.example", path: "/admin/api/overview", headers: elsewhereHTTPS("192.0.2.1"), cookie: c}
	now = now.Add(12*time.Hour - time.Second)
	if resp := r.ask(overview); resp.StatusCode != http.StatusOK {
		t.Errorf("before the end: %s", resp.Status)
	}
	now = now.Add(time.Second)
	if resp := r.ask(overview); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after twelve hours: %s", resp.Status)
	}
	// As many as one likes can be opened, and the newest hold.
	var secrets []string
	for range 3 * maxOwnerSessions {
		now = now.Add(time.Second)
		secrets = append(secrets, r.server.owners.open())
	}
	for i, secret := range secrets {
		if r.server.owners.holds(secret) != (i >= len(secrets)-maxOwnerSessions) {
			t.Errorf("session %d of %d", i, len(secrets))
		}
	}
	if n := len(r.server.owners.ends); n != maxOwnerSessions {
		t.Errorf("%d sessions are remembered", n)
	}
}

// The admin token crosses a network unencrypted only where the owner has chosen that.
func TestOwnerLoginPlain(t *testing.T) {
	post := visit{peer: "192.0.2.1", host: "agent.example:8787", method: http.MethodPost, path: "/admin/api/login", body: `{"token":"` + adminToken + `"}`}
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
		r := start(t, append(tt.environ, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminToken)...)
		v := post
		v.headers = tt.headers
		resp := r.ask(v)
		if !tt.plain {
			if resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
				t.Errorf("%s: %s %v", name, resp.Status, resp.Cookies())
			}
			continue
		}
		if a := decode[OwnerAccess](t, resp); a != (OwnerAccess{Access: "session", Plain: true}) || len(resp.Cookies()) != 1 {
			t.Fatalf("%s: %+v", name, a)
		}
		c := resp.Cookies()[0]
		if c.Name != "hm_admin" || c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("cookie %+v", c)
		}
		if !strings.Contains(r.log.String(), "unencrypted") {
			t.Error("no warning")
		}
		if resp := r.ask(visit{peer: "192.0.2.1", host: "agent.example:8787", path: "/admin/api/overview", cookie: c}); resp.StatusCode != http.StatusOK {
			t.Errorf("after the login: %s", resp.Status)
		}
	}
}

// By real TLS, with the server's own certificate; the forwarding header makes it come from elsewhere.
func TestOwnerOverTLS(t *testing.T) {
	r := start(t, "MOBILE_TLS=self", "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminToken)
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
	if a := decode[OwnerAccess](t, do(http.MethodGet, "/admin/api/session", "")); a.Access != "here" {
		t.Errorf("%+v", a)
	}
	const away = "X-Forwarded-For: 192.0.2.1"
	if resp := do(http.MethodGet, "/admin/api/overview", "", away); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s", resp.Status)
	}
	resp := do(http.MethodPost, "/admin/api/login", `{"token":"`+adminToken+`"}`, away)
	if a := decode[OwnerAccess](t, resp); a.Access != "session" || a.Plain || len(resp.Cookies()) != 1 {
		t.Fatalf("%+v", a)
	}
	c := resp.Cookies()[0]
	if c.Name != "__Host-hm_admin" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %+v", c)
	}
	if resp := do(http.MethodGet, "/admin/api/overview", "", away, "Cookie: "+c.Name+"="+c.Value); resp.StatusCode != http.StatusOK {
		t.Errorf("%s", resp.Status)
	}
}
