package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func page(t *testing.T, o Options) *Page {
	t.Helper()
	if o.Base == nil {
		o.Base = func(*http.Request) string { return "https://agent.example.com" }
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(p *Page, path string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every file that the first screen names is there, with a type that browsers accept together with
// nosniff.
func TestFiles(t *testing.T) {
	p := page(t, Options{Path: "/ws"})
	index := body(t, get(p, "/").Body)
	names := regexp.MustCompile(`(?:src|href)="\./([^"]+)"`).FindAllStringSubmatch(index, -1)
	if len(names) < 4 {
		t.Fatalf("the page names %d files: %s", len(names), index)
	}
	for _, name := range names {
		res := get(p, "/"+name[1])
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %q", name[1], res.StatusCode, res.Header.Get("Content-Type"))
		}
		want := "no-cache"
		if strings.HasPrefix(name[1], "assets/") {
			want = "public, max-age=31536000, immutable"
		}
		if got := res.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q", name[1], got)
		}
	}
	for path, mime := range map[string]string{"/sw.js": "text/javascript; charset=utf-8", "/manifest.webmanifest": "application/manifest+json", "/": "text/html; charset=utf-8", "/icon-192.png": "image/png"} {
		if got := get(p, path).Header.Get("Content-Type"); got != mime {
			t.Errorf("%s is %q", path, got)
		}
	}
	if res := get(p, "/index.html"); res.StatusCode != http.StatusNotFound {
		t.Errorf("the page has a second address: %d", res.StatusCode)
	}
}

// The page is told where devices connect, whatever stands in the setting.
func TestPath(t *testing.T) {
	if index := body(t, get(page(t, Options{Path: "/agent/ws"}), "/").Body); !strings.Contains(index, `<meta name="hermes-path" content="/agent/ws"`) {
		t.Errorf("the page does not know its path: %s", index)
	}
	one, other := get(page(t, Options{Path: "/a"}), "/").Header.Get("ETag"), get(page(t, Options{Path: "/b"}), "/").Header.Get("ETag")
	if one == other {
		t.Error("pages that differ have one ETag")
	}
}

// The page of the direct client knows that it is one, and no other does.
func TestApp(t *testing.T) {
	for app, want := range map[bool]string{true: `content="1"`, false: `content=""`} {
		if index := body(t, get(page(t, Options{Path: "/ws", App: app}), "/").Body); !strings.Contains(index, `<meta name="hermes-app" `+want) {
			t.Errorf("with App %t: %s", app, index)
		}
	}
}

func TestCaching(t *testing.T) {
	p := page(t, Options{Path: "/ws"})
	plain := get(p, "/")
	res := get(p, "/", "Accept-Encoding", "br, gzip;q=0.8")
	if res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("not compressed: %v", res.Header)
	}
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body(t, z) != body(t, plain.Body) {
		t.Error("compressed it says something else")
	}
	if res.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Error("two encodings have one ETag")
	}
	for _, no := range []string{"gzip;q=0", "br", ""} {
		if got := get(p, "/", "Accept-Encoding", no).Header.Get("Content-Encoding"); got != "" {
			t.Errorf("Accept-Encoding %q gets %q", no, got)
		}
	}
	tag := plain.Header.Get("ETag")
	for _, known := range []string{tag, `"x", W/` + tag, "*"} {
		if res := get(p, "/", "If-None-Match", known); res.StatusCode != http.StatusNotModified || body(t, res.Body) != "" {
			t.Errorf("If-None-Match %q: %d", known, res.StatusCode)
		}
	}
	if res := get(p, "/", "If-None-Match", `"other"`); res.StatusCode != http.StatusOK {
		t.Errorf("another ETag: %d", res.StatusCode)
	}
	r := httptest.NewRequest(http.MethodHead, "/", nil)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	if w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Error("HEAD has a body or no length")
	}
}

// The policy allows nothing in the page but its own files, and a Host header cannot add to it.
func TestPolicy(t *testing.T) {
	policy := func(o Options) string { return get(page(t, o), "/").Header.Get("Content-Security-Policy") }
	csp := policy(Options{AvatarURL: "https://avatar.example.com/a.html"})
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self' wss://agent.example.com;", "frame-src 'self' https://avatar.example.com;", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify hermes-mobile"} {
		if !strings.Contains(csp, want) {
			t.Errorf("%q is missing in %q", want, csp)
		}
	}
	if got := get(page(t, Options{}), "/").Header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
		t.Errorf("pages of others may load the page's files: %q", got)
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("unsafe: %q", csp)
	}
	for _, base := range []string{"http://x; script-src *", "http://a b", "http://", "nothing", "http://*"} {
		csp := policy(Options{Base: func(*http.Request) string { return base }})
		if !strings.Contains(csp, "connect-src 'self';") {
			t.Errorf("base %q: %q", base, csp)
		}
	}
	for _, avatar := range []string{"", "javascript:alert(1)", "https://", "https://a;b/", "data:text/html,x"} {
		if csp := policy(Options{AvatarURL: avatar}); !strings.Contains(csp, "frame-src 'none';") {
			t.Errorf("avatar %q: %q", avatar, csp)
		}
	}
}
