package app

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/onetime"
)

type wall struct {
	*Guard
	clock   time.Time
	reached int
	handler http.Handler
}

func newWall() *wall {
	w := &wall{clock: time.Unix(1_800_000_000, 0)}
	w.Guard = newGuard(23456, func() time.Time { return w.clock })
	w.handler = w.before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.reached++ }))
	return w
}

// try sends a request and reports whether the guard passed it. The headers are pairs of name and
// value.
func (w *wall) try(method, target string, header ...string) (*http.Response, bool) {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Add(header[i], header[i+1])
		}
	}
	before := w.reached
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec.Result(), w.reached > before
}

const here = "http://127.0.0.1:23456"

func (w *wall) cookieLine() string {
	c := w.pass()
	return c.Name + "=" + c.Value
}

func TestGuard(t *testing.T) {
	t.Parallel()
	w := newWall()
	cookie := w.cookieLine()
	for name, tc := range map[string]struct {
		method, target string
		header         []string
		status         int // 0: it passes
	}{
		"with the cookie":         {"GET", here + "/", []string{"Cookie", cookie}, 0},
		"by name":                 {"GET", here + "/", []string{"Cookie", cookie, "Host", "localhost:23456"}, 0},
		"no cookie":               {"GET", here + "/", nil, 401},
		"no cookie, a worker":     {"GET", here + "/sw.js", nil, 401},
		"no cookie, an asset":     {"GET", here + "/assets/index.js", nil, 401},
		"no cookie, a socket":     {"GET", here + "/ws", []string{"Upgrade", "websocket", "Origin", here}, 401},
		"no cookie, the state":    {"GET", here + "/app/state", nil, 401},
		"a cookie of nobody":      {"GET", here + "/", []string{"Cookie", w.cookie + "=" + strings.Repeat("A", 52)}, 401},
		"an empty cookie":         {"GET", here + "/", []string{"Cookie", w.cookie + "="}, 401},
		"two cookies":             {"GET", here + "/", []string{"Cookie", w.cookie + "=x; " + cookie}, 0},
		"a rebound name":          {"GET", here + "/", []string{"Cookie", cookie, "Host", "evil.example:23456"}, 421},
		"a name that looks alike": {"GET", here + "/", []string{"Cookie", cookie, "Host", "localhost.evil.example:23456"}, 421},
		"another port":            {"GET", here + "/", []string{"Cookie", cookie, "Host", "127.0.0.1:23457"}, 421},
		"no port":                 {"GET", here + "/", []string{"Cookie", cookie, "Host", "127.0.0.1"}, 421},
		"another address":         {"GET", here + "/", []string{"Cookie", cookie, "Host", "127.0.0.2:23456"}, 421},
		"IPv6":                    {"GET", here + "/", []string{"Cookie", cookie, "Host", "[::1]:23456"}, 421},
		"a socket":                {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", here}, 0},
		"a socket by name":        {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket", "Host", "localhost:23456", "Origin", "http://localhost:23456"}, 0},
		"a socket of no page":     {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket"}, 403},
		"a socket of another":     {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", "https://evil.example"}, 403},
		"a socket of a neighbour": {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", "http://127.0.0.1:8080"}, 403},
		"names mixed":             {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", "http://localhost:23456"}, 403},
		"an opaque origin":        {"GET", here + "/ws", []string{"Cookie", cookie, "Upgrade", "websocket", "Origin", "null"}, 403},
		"two origins":             {"POST", here + "/app/setup", []string{"Cookie", cookie, "Origin", here, "Origin", "https://evil.example"}, 403},
		"https":                   {"POST", here + "/app/setup", []string{"Cookie", cookie, "Origin", "https://127.0.0.1:23456"}, 403},
		"a write":                 {"POST", here + "/app/setup", []string{"Cookie", cookie, "Origin", here}, 0},
		"a write of no page":      {"POST", here + "/app/setup", []string{"Cookie", cookie}, 403},
		"a read of another page":  {"GET", here + "/app/state", []string{"Cookie", cookie, "Origin", "http://127.0.0.1:8080"}, 403},
		"a preflight":             {"OPTIONS", here + "/app/setup", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, 403},
		"an image of a neighbour": {"GET", here + "/media/x", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		"a script of a stranger":  {"GET", here + "/assets/index.js", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "script"}, 403},
		"a frame of a neighbour":  {"GET", here + "/", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		"a link of a neighbour":   {"GET", here + "/", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 0},
		"a link to the state":     {"GET", here + "/app/state", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
	} {
		resp, passed := w.try(tc.method, tc.target, tc.header...)
		if passed != (tc.status == 0) || !passed && resp.StatusCode != tc.status {
			t.Errorf("%s: status %d, passed %t, want %d", name, resp.StatusCode, passed, tc.status)
		}
		for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": ""} {
			if got := resp.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: the policy is %q", name, csp)
		}
	}
}

func TestOneTimeKey(t *testing.T) {
	t.Parallel()
	w := newWall()
	link := w.link()
	if resp, _ := w.try("HEAD", link); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %s", resp.Status)
	}
	if resp, _ := w.try("GET", link, "Sec-Purpose", "prefetch"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a prefetch: %s", resp.Status)
	}
	resp, passed := w.try("GET", link)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/" || resp.Header.Get("Cache-Control") != "no-store" || passed {
		t.Fatalf("%s to %q", resp.Status, resp.Header.Get("Location"))
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("the cookie is %s", c)
	}
	u, err := url.Parse(link)
	if err != nil || c.Value == u.Query().Get(onetime.KeyName) {
		t.Error("the cookie is the key")
	}
	line := c.Name + "=" + c.Value
	if _, passed := w.try("GET", here+"/", "Cookie", line); !passed {
		t.Error("the cookie does not open the page")
	}
	if resp, _ := w.try("GET", link); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
		t.Errorf("a second time: %s", resp.Status)
	}
	if resp, _ := w.try("GET", link, "Cookie", line); resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) > 0 {
		t.Errorf("who is in already: %s", resp.Status)
	}
	for _, bad := range []string{"", "?key=", "?key=AAAA"} {
		if resp, _ := w.try("GET", here+enterPath+bad); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %s", bad, resp.Status)
		}
	}

	link = w.link()
	w.clock = w.clock.Add(onetime.KeyLife)
	if resp, _ := w.try("GET", link); resp.StatusCode != http.StatusForbidden {
		t.Errorf("after two minutes: %s", resp.Status)
	}
	link = w.link()
	w.clock = w.clock.Add(onetime.KeyLife - time.Second)
	if resp, _ := w.try("GET", link); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("just before: %s", resp.Status)
	}
	w.clock = w.clock.Add(1000 * time.Hour)
	if _, passed := w.try("GET", here+"/", "Cookie", line); !passed {
		t.Error("a session ended by itself")
	}
}
