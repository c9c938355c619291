package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// unknownVisits are requests of whom nothing is known, as they look where proxies and forwards of
// all kinds are in between. Those of the first list look as if they came from this machine.
func unknownVisits(r *rig) (fromHere, fromElsewhere map[string]visit) {
	_, port, _ := strings.Cut(r.server.Addr().String(), ":")
	fromHere = map[string]visit{
		"a program on this machine":           {},
		"by name":                             {host: "localhost:" + port},
		"by IPv6":                             {host: "[::1]:" + port},
		"by a name in capitals":               {host: "LOCALHOST:" + port},
		"nginx with its own example":          {headers: []string{"Connection: close"}},
		"a TCP forward, with a chosen Host":   {host: "127.0.0.1:" + port},
		"from this machine's network address": {peer: "192.0.2.1", at: "192.0.2.1:" + port, host: "192.0.2.1:" + port},
	}
	fromElsewhere = map[string]visit{
		"another machine":               {peer: "192.0.2.9"},
		"another machine, named local":  {peer: "192.0.2.9", host: "localhost:" + port},
		"another machine that pretends": {peer: "192.0.2.9", headers: []string{"X-Forwarded-For: 127.0.0.1"}},
		"another machine by https":      {peer: "2001:db8::1", https: true},
		"behind a proxy here":           {headers: []string{"X-Forwarded-For: 192.0.2.9"}},
		"behind a proxy, pretending":    {headers: []string{"X-Forwarded-For: 127.0.0.1"}},
		"behind a proxy, RFC 7239":      {headers: []string{"Forwarded: for=127.0.0.1"}},
		"behind a proxy, X-Real-IP":     {headers: []string{"X-Real-IP: 127.0.0.1"}},
		"behind a proxy that says Via":  {headers: []string{"Via: 1.1 a"}},
		"a name that points here":       {host: "evil.example"},
		"a name that begins like it":    {host: "localhost.evil.example:" + port},
		"a name that ends like it":      {host: "127.0.0.1.evil.example"},
		"without the port":              {host: "localhost"},
		"with another port":             {host: "localhost:1"},
		"another loopback address":      {host: "127.1.2.3:" + port},
		"the network address from here": {host: "192.168.1.5:" + port},
		"no name":                       {host: ":" + port},
	}
	return fromHere, fromElsewhere
}

// Nobody gets in because of an address, a Host or a header, whatever MOBILE_ADMIN says.
func TestNothingIsOpenByAddress(t *testing.T) {
	for mode, environ := range map[string][]string{
		"local": nil, "off": {"MOBILE_ADMIN=off"}, "on": {"MOBILE_ADMIN_TOKEN=" + adminSecret}, "plain": {"MOBILE_ADMIN_TOKEN=" + adminSecret, "MOBILE_PUBLIC_URL=http://agent.example"},
	} {
		r := start(t, append(environ, "MOBILE_TOKEN="+mainToken)...)
		here, elsewhere := unknownVisits(r)
		for _, list := range []map[string]visit{here, elsewhere} {
			for name, v := range list {
				for _, v.path = range []string{"/admin/api/overview", "/admin/api/doctor", "/admin/api/deliveries?limit=1", "/admin/api/status", "/metrics", "/readyz", "/admin/enter?key=" + strings.Repeat("A", 26)} {
					for _, v.method = range []string{http.MethodGet, http.MethodHead} {
						resp := r.ask(v)
						body := text(t, resp)
						for _, secret := range []string{"1.2.3", "hermes_mobile_", r.cfg.Data, `"details":true`} {
							if strings.Contains(body, secret) {
								t.Errorf("%s: %s reads %s of %s", mode, name, secret, v.path)
							}
						}
						if resp.StatusCode == http.StatusOK && v.path != "/readyz" || len(resp.Cookies()) > 0 {
							t.Errorf("%s: %s gets %s: %s", mode, name, v.path, resp.Status)
						}
					}
				}
				for path, body := range map[string]string{"/pair": "{}", "/tokens/add": `{"label":"x"}`, "/login": `{"token":""}`, "/admin/link": "{}"} {
					v.method, v.path, v.body = http.MethodPost, "/admin/api"+path, body
					if resp := r.ask(v); resp.StatusCode < 400 || len(resp.Cookies()) > 0 {
						t.Errorf("%s: %s posts to %s: %s", mode, name, path, resp.Status)
					}
				}
			}
		}
	}
}

// With MOBILE_ADMIN=local there is nothing for anybody who is not on this machine, and not even a
// sign of it; with off for nobody.
func TestOwnerIsHidden(t *testing.T) {
	for _, mode := range []string{"local", "off"} {
		r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN="+mode)
		unknown := text(t, r.ask(visit{path: "/nothing"}))
		here, hidden := unknownVisits(r)
		if mode == "off" {
			for name, v := range here {
				hidden[name] = v
			}
		}
		for name, v := range hidden {
			for _, v.path = range []string{"/admin", "/admin/", "/admin/enter?key=x", "/admin/api/session", "/admin/api/login", "/admin/api/overview", "/admin/api/nothing"} {
				for _, v.method = range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
					v.body = `{"token":""}`
					if resp := r.ask(v); resp.StatusCode != http.StatusNotFound || text(t, resp) != unknown || resp.Header.Get("Set-Cookie") != "" {
						t.Errorf("%s, %s: %s %s is answered with %s", mode, name, v.method, v.path, resp.Status)
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
		if code, _ := r.get("/admin"); (code == http.StatusOK) != (mode == "local") {
			t.Errorf("%s: over the network the page is answered with %d", mode, code)
		}
	}
}

// On this machine everybody sees the page, which says how to get in, and nothing else.
func TestOwnerHere(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	here, _ := unknownVisits(r)
	for name, v := range here {
		v.path = "/admin"
		resp := r.ask(v)
		csp := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Cache-Control") != "no-store" || !strings.Contains(csp, "default-src 'none'; script-src 'self'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || resp.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" || !strings.Contains(text(t, resp), "assets/admin-") {
			t.Errorf("%s: %s %v", name, resp.Status, resp.Header)
		}
		v.path = "/admin/api/session"
		if a := decode[OwnerAccess](t, r.ask(v)); a != (OwnerAccess{Access: "link"}) {
			t.Errorf("%s: %+v", name, a)
		}
		v.path = "/admin/api/overview"
		if resp := r.ask(v); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text(t, resp), "hermes-mobile admin") {
			t.Errorf("%s: %s", name, resp.Status)
		}
		if o := decode[Overview](t, r.ask(v.with(r.owner()))); o.Status.Version != "1.2.3" {
			t.Errorf("%s, with the cookie: %+v", name, o.Status)
		}
	}
	resp := r.asOwner(visit{path: "/admin/api/overview"})
	if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%v", resp.Header)
	}
	for _, name := range r.server.page.Paths() {
		if strings.HasPrefix(name, "/admin") {
			t.Errorf("everybody is shown %s", name)
		}
	}
}

// A page of another site, or of another port here, can neither read nor change anything in the
// browser of the owner, whose cookie is sent along.
func TestOwnerChangesOnlyFromTheOwnPage(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.connect("tel-1", mainToken)
	own := "http://" + r.server.Addr().String()
	for name, headers := range map[string][]string{
		"another site":             {"Origin: https://evil.example"},
		"another port":             {"Origin: http://127.0.0.1:1"},
		"another name of here":     {"Origin: " + strings.Replace(own, "127.0.0.1", "localhost", 1)},
		"https for http":           {"Origin: https" + strings.TrimPrefix(own, "http")},
		"a sandbox":                {"Origin: null"},
		"no origin":                {"Origin: -"},
		"a form":                   {"Content-Type: text/plain"},
		"a form that says so":      {"Content-Type: application/x-www-form-urlencoded"},
		"no type":                  {"Content-Type: -"},
		"without our header":       {ownerHeader + ": -"},
		"JSON as another's type":   {"Content-Type: text/plain; application/json"},
		"another site, by a form":  {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
		"a page of another port":   {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"},
		"an image of another port": {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"},
	} {
		v := visit{method: http.MethodPost, path: "/admin/api/devices/rename", body: `{"id":"tel-1","name":"Mallory"}`, headers: headers}
		if resp := r.asOwner(v); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	for name, headers := range map[string][]string{
		"without our header":    {ownerHeader + ": -"},
		"a page of another one": {"Origin: http://127.0.0.1:1"},
		"a script of another":   {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"},
		"a link on another":     {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
	} {
		if resp := r.asOwner(visit{path: "/admin/api/overview", headers: headers}); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s reads: %s", name, resp.Status)
		}
	}
	for _, path := range []string{"/metrics", "/readyz"} {
		for _, headers := range [][]string{{"Origin: http://127.0.0.1:1"}, {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"}} {
			if body := text(t, r.asOwner(visit{path: path, headers: headers})); strings.Contains(body, "hermes_mobile_") || strings.Contains(body, `"details":true`) {
				t.Errorf("%s is read by another page (%s)", path, headers)
			}
		}
	}
	if resp := r.asOwner(visit{method: http.MethodOptions, path: "/admin/api/overview", headers: []string{"Origin: https://evil.example", ownerHeader + ": -"}}); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another origin is let in")
	}
	if o := decode[Overview](t, r.asOwner(visit{path: "/admin/api/overview"})); o.Devices[0].Name == "Mallory" {
		t.Error("it was changed all the same")
	}
	if resp := r.asOwner(visit{method: http.MethodPost, path: "/admin/api/devices/rename", body: `{"id":"tel-1","name":"Anna"}`}); resp.StatusCode != http.StatusOK {
		t.Errorf("from the own page: %s", resp.Status)
	}
}

// The owner looks at a page that another program serves at another port of this machine, such as a
// preview of the agent's: the browser sends it the cookie. It is of no use without the secret of
// the page.
func TestAdminCookieThatOthersSaw(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	own := r.owner()
	other := r.owner()
	for name, headers := range map[string][]string{"alone": nil, "with the word of old": {ownerHeader + ": 1"}, "with the page of another session": {ownerHeader + ": " + other.page}, "with its own value": {ownerHeader + ": " + own.cookie.Value}} {
		for path, method := range map[string]string{"/admin/api/overview": http.MethodGet, "/admin/api/pair": http.MethodPost, "/admin/api/tokens/add": http.MethodPost} {
			if resp := r.ask(visit{method: method, path: path, body: `{"label":"stolen"}`, cookie: own.cookie, headers: headers}); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s %s", name, path, resp.Status)
			}
		}
		v := visit{path: "/admin/api/session", cookie: own.cookie, headers: headers}
		if a := decode[OwnerAccess](t, r.ask(v)); a.Access == "session" || a.Page != "" {
			t.Errorf("%s: the secret of the page is told again: %+v", name, a)
		}
	}
	if resp := r.ask(visit{path: "/admin/api/overview"}.with(own)); resp.StatusCode != http.StatusOK {
		t.Errorf("the page itself: %s", resp.Status)
	}
	// A page that logs in by the token gets its secret with the answer.
	c, resp := r.login("192.0.2.1", adminSecret)
	a := decode[OwnerAccess](t, resp)
	v := visit{host: "agent.example", path: "/admin/api/overview", headers: elsewhereHTTPS("192.0.2.1"), cookie: c}
	if resp := r.ask(v); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the cookie of a login alone: %s", resp.Status)
	}
	if resp := r.ask(v.with(pass{c, a.Page})); resp.StatusCode != http.StatusOK {
		t.Errorf("the page of a login: %s", resp.Status)
	}
}

// What is not for strangers is for who has the metrics token, a login to the admin UI, or the admin
// socket.
func TestWhoReadsMetrics(t *testing.T) {
	const metrics = "a-token-for-metrics-0123456789abcdef"
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_METRICS_TOKEN="+metrics, "MOBILE_ADMIN_TOKEN="+adminSecret)
	cookie := r.owner().cookie
	for name, tt := range map[string]struct {
		v    visit
		full bool
	}{
		"nobody":                        {visit{}, false},
		"the metrics token":             {visit{headers: []string{"Authorization: Bearer " + metrics}}, true},
		"the metrics token, elsewhere":  {visit{peer: "192.0.2.1", host: "agent.example", headers: []string{"Authorization: Bearer " + metrics}}, true},
		"a wrong token":                 {visit{headers: []string{"Authorization: Bearer x" + metrics}}, false},
		"another scheme":                {visit{headers: []string{"Authorization: Basic " + metrics}}, false},
		"an empty token":                {visit{headers: []string{"Authorization: Bearer "}}, false},
		"the admin token":               {visit{headers: []string{"Authorization: Bearer " + adminSecret}}, false},
		"the owner":                     {visit{cookie: cookie}, true},
		"the owner, by an address line": {visit{cookie: cookie, headers: []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}}, true},
		"the cookie at another name":    {visit{cookie: cookie, host: "agent.example"}, false},
		"the cookie from elsewhere":     {visit{cookie: cookie, peer: "192.0.2.1", host: "agent.example"}, false},
	} {
		tt.v.path = "/metrics"
		resp := r.ask(tt.v)
		body := text(t, resp)
		if tt.full != (resp.StatusCode == http.StatusOK && strings.Contains(body, "hermes_mobile_device_connections")) || !tt.full && resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: /metrics %s", name, resp.Status)
		}
		if tt.full && resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: metrics may be kept", name)
		}
		tt.v.path = "/readyz"
		if body := text(t, r.ask(tt.v)); strings.Contains(body, `"details":true`) != tt.full {
			t.Errorf("%s: /readyz %s", name, body)
		}
	}
	var h Health
	ok(t, r.admin.Get(t.Context(), "/readyz", &h))
	if !h.Ready || !h.Details {
		t.Errorf("over the socket: %+v", h)
	}
}
