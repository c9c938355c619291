package web

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func nowhere(netip.Addr) bool { return false }

// faces is a host of an avatar page. Its page is what handle answers.
func faces(t *testing.T, handle http.HandlerFunc) (*avatar, *httptest.Server) {
	t.Helper()
	host := httptest.NewServer(handle)
	t.Cleanup(host.Close)
	at, err := url.Parse(host.URL + "/faces/a.html?mood=calm")
	if err != nil {
		t.Fatal(err)
	}
	return newAvatar(at, nowhere, slog.New(slog.DiscardHandler)), host
}

func visitFace(a *avatar, dest string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, AvatarPath, nil)
	if dest != "" {
		r.Header.Set("Sec-Fetch-Dest", dest)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result()
}

// Whatever is served from our address has no origin of ours, a redirect included.
func TestAvatarIsSandboxed(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusForbidden} {
		a, _ := faces(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("Content-Security-Policy", "sandbox allow-same-origin allow-scripts")
			w.WriteHeader(status)
		})
		for _, dest := range []string{"", "iframe", "document", "script"} {
			res := visitFace(a, dest)
			if got := res.Header.Get("Content-Security-Policy"); got != "sandbox allow-scripts; frame-ancestors 'self'" {
				t.Errorf("%d %q: %q", status, dest, got)
			}
			if res.Header.Get("Set-Cookie") != "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%d %q: %v", status, dest, res.Header)
			}
			if framed := status == http.StatusOK && (dest == "" || dest == "iframe"); framed != (res.StatusCode == http.StatusOK) {
				t.Errorf("%d %q: %d", status, dest, res.StatusCode)
			}
		}
	}
}

func TestAvatarScriptComesFirst(t *testing.T) {
	script := "<script>" + avatarScript + "</script>"
	if strings.Contains(strings.ToLower(avatarScript), "</script") || strings.Contains(avatarScript, "<!--") {
		t.Fatal("the script ends its own element")
	}
	for content, want := range map[string]string{
		"<!doctype html><body>x":                      "<!doctype html>" + script + `<base href="BASE"><body>x`,
		"\xef\xbb\xbf<!-- a > b --> <!DOCTYPE html>x": "\xef\xbb\xbf<!-- a > b --> <!DOCTYPE html>" + script + `<base href="BASE">x`,
		"<script>1</script><!doctype html>":           script + `<base href="BASE"><script>1</script><!doctype html>`,
		"":                                            script + `<base href="BASE">`,
		`<!doctype html><base target=a href="../b/">`:     "<!doctype html>" + script + `<base href="HOST/b/"><base target=a href="../b/">`,
		`<base href='//evil.example/"><i>'>`:              script + `<base href="http://evil.example/%22%3E%3Ci%3E"><base href='//evil.example/"><i>'>`,
		"<base href=https://cdn.example.com/x?a=1&amp;b>": script + `<base href="https://cdn.example.com/x?a=1&amp;b"><base href=https://cdn.example.com/x?a=1&amp;b>`,
	} {
		a, host := faces(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, content)
		})
		want = strings.NewReplacer("BASE", host.URL+"/faces/a.html?mood=calm", "HOST", host.URL).Replace(want)
		if got := body(t, visitFace(a, "iframe").Body); got != want {
			t.Errorf("%q:\n got %q\nwant %q", content, strings.ReplaceAll(got, script, "SCRIPT"), strings.ReplaceAll(want, script, "SCRIPT"))
		}
	}
}

// Browsers look for the declaration of characters at the beginning, where the script is now.
func TestAvatarCharset(t *testing.T) {
	for _, c := range []struct{ header, content, want string }{
		{"text/html", "<meta charset=windows-1251>", "text/html; charset=windows-1251"},
		{"text/html", `<META http-equiv=Content-Type content="text/html; charset=koi8-r">`, "text/html; charset=koi8-r"},
		{"text/html; charset=iso-8859-2", "<meta charset=utf-8>", "text/html; charset=iso-8859-2"},
		{"text/html", "x", "text/html; charset=utf-8"},
		{"text/html; charset=utf-16le", "x", ""},
		{"text/html", "\xff\xfex\x00", ""},
		{"text/plain", "x", ""},
		{"", "x", ""},
	} {
		a, host := faces(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.header)
			_, _ = io.WriteString(w, c.content)
		})
		res := visitFace(a, "iframe")
		if c.want == "" && res.StatusCode != http.StatusFound || c.want != "" && res.Header.Get("Content-Type") != c.want {
			t.Errorf("%q %q: %d %q", c.header, c.content, res.StatusCode, res.Header.Get("Content-Type"))
		}
		if c.want == "" && res.Header.Get("Location") != host.URL+"/faces/a.html?mood=calm" {
			t.Errorf("%q: %q", c.header, res.Header.Get("Location"))
		}
	}
}

// A host that sends too much, elsewhere, or nothing is not fetched from; one that is asked often is
// asked once.
func TestAvatarHostIsBounded(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "a secret of this network")
	}))
	defer inner.Close()
	for name, handle := range map[string]http.HandlerFunc{
		"large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for range maxAvatar/1024 + 1 {
				_, _ = fmt.Fprint(w, strings.Repeat("x", 1024))
			}
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner.URL, http.StatusFound) },
		"circle":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "<p>")
		},
	} {
		a, _ := faces(t, handle)
		if res := visitFace(a, "iframe"); res.StatusCode != http.StatusFound || strings.Contains(body(t, res.Body), "secret") {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}

	var asked atomic.Int32
	a, _ := faces(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, asked.Add(1))
	})
	now := time.Now()
	a.now = func() time.Time { return now }
	var visitors sync.WaitGroup
	for range 20 {
		visitors.Go(func() {
			if res := visitFace(a, "iframe"); res.StatusCode != http.StatusOK {
				t.Errorf("%d", res.StatusCode)
			}
		})
	}
	visitors.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	now = now.Add(avatarFresh)
	if got := body(t, visitFace(a, "iframe").Body); !strings.HasSuffix(got, "2") {
		t.Errorf("a minute later it is %q", got[len(got)-10:])
	}
}

// A public name may come to stand for a service of this network.
func TestAvatarNameMayNotLeadInside(t *testing.T) {
	for host, local := range map[string]bool{
		"127.0.0.1": true, "::1": true, "192.168.1.7": true, "localhost": true, "homeserver": true, "face.local": true, "a.home.arpa": true, "A.LAN.": true,
		"example.com": false, "local.example": false, "127.0.0.1.nip.io": false, "evillan.com": false, "notlan": true,
	} {
		if namedLocally(host) != local {
			t.Errorf("%s: %v", host, !local)
		}
	}
	_, host := faces(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") })
	at, _ := url.Parse(strings.Replace(host.URL, "127.0.0.1", "face.example.com", 1))
	a := newAvatar(at, nowhere, slog.New(slog.DiscardHandler))
	control := a.client.Transport.(*http.Transport).DialContext
	if _, err := control(t.Context(), "tcp", strings.TrimPrefix(host.URL, "http://")); err == nil || !strings.Contains(err.Error(), "public internet") {
		t.Errorf("dialled: %v", err)
	}
}
