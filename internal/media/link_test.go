package media

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var testHash = strings.Repeat("0123456789abcdef", 4)

func TestLink(t *testing.T) {
	s := NewSigner([32]byte{1})
	link := s.Sign("phone", testHash, "../отчёт 1.pdf", "Application/PDF", t0.Add(time.Hour))
	want := Link{"phone", testHash, "отчёт 1.pdf", "application/pdf", t0.Add(time.Hour)}
	got, err := s.Verify(link, "", t0)
	if err != nil || !got.Expires.Equal(want.Expires) {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Expires = want.Expires; got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range len(link) {
		for _, c := range []byte("A_/=\n") {
			if changed := link[:i] + string(c) + link[i+1:]; changed != link {
				if _, err := s.Verify(changed, "", t0); !errors.Is(err, ErrLink) {
					t.Fatalf("%q at %d: %v", c, i, err)
				}
			}
		}
	}
	for _, changed := range []string{"", "/", LinkPrefix, link + "A", link + "\n", link + "=", link[:len(link)-1], LinkPrefix + strings.Repeat("A", 1<<20)} {
		if _, err := s.Verify(changed, "", t0); !errors.Is(err, ErrLink) {
			t.Errorf("%.80q: %v", changed, err)
		}
	}
	if _, err := s.Verify(link, "x=1", t0); !errors.Is(err, ErrLink) {
		t.Errorf("with a query: %v", err)
	}
	if _, err := NewSigner([32]byte{2}).Verify(link, "", t0); !errors.Is(err, ErrLink) {
		t.Errorf("another key: %v", err)
	}
	if _, err := s.Verify(link, "", t0.Add(time.Hour)); !errors.Is(err, ErrLinkExpired) {
		t.Errorf("in the end: %v", err)
	}
	if s.Sign("phone", "../etc", "a", "a/b", t0) != "" {
		t.Error("a link to what is no hash")
	}
	// Device and name may not be moved into one another.
	if s.Sign("ab", testHash, "c", "", t0) == s.Sign("a", testHash, "bc", "", t0) {
		t.Error("two links with one token")
	}
}

func FuzzVerify(f *testing.F) {
	s := NewSigner([32]byte{1})
	f.Add(s.Sign("phone", testHash, "a.txt", "text/plain", t0), "")
	f.Add(s.Sign("", testHash, "", "", t0.Add(-time.Hour)), "")
	f.Add("/media/AAAA", "a=b")
	f.Add("/media/"+strings.Repeat("_", 200), "")
	f.Fuzz(func(t *testing.T, path, query string) {
		l, err := s.Verify(path, query, t0.Add(-time.Minute))
		if err == nil && s.Sign(l.Device, l.Hash, l.Filename, l.Mime, l.Expires) != path {
			t.Fatalf("%q verified as %+v, which has another link", path, l)
		}
	})
}

func FuzzSign(f *testing.F) {
	s := NewSigner([32]byte{1})
	f.Add("phone", "a.txt", "text/plain; charset=utf-8", int64(1))
	f.Add("\xff\x00", "\u202egpj.exe", "a/b\r\nX: y", int64(-1))
	f.Fuzz(func(t *testing.T, device, name, mimeType string, expires int64) {
		if len(device) > 1024 {
			return
		}
		link := s.Sign(device, testHash, name, mimeType, time.Unix(expires, 0))
		l, err := s.Verify(link, "", time.Unix(expires, 0).Add(-1))
		if err != nil || l.Device != device || l.Filename != CleanName(name) || l.Expires.Unix() != expires {
			t.Fatalf("%+v, %v", l, err)
		}
	})
}

// site serves a store with one file at a time that the test sets.
type site struct {
	t *testing.T
	*Store
	*Signer
	now    time.Time
	closed bool  // the device has no access any more
	broken error // and nobody can tell
}

func (s *site) allow(_ context.Context, device string) (bool, error) {
	if device != "phone" {
		s.t.Errorf("asked about %q", device)
	}
	return !s.closed, s.broken
}

func newSite(t *testing.T) *site {
	return &site{t: t, Store: newStore(t), Signer: NewSigner([32]byte{7}), now: t0}
}

func (s *site) link(b []byte, name, mimeType string) string {
	return s.Sign("phone", mustPut(s.t, s.Store, b).Hash, name, mimeType, t0.Add(time.Hour))
}

func (s *site) get(method, link string, header ...string) *http.Response {
	r := httptest.NewRequest(method, link, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(s.Store, s.Signer, func() time.Time { return s.now }, s.allow).ServeHTTP(w, r)
	res := w.Result()
	for name, want := range map[string]string{
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "sandbox; default-src 'none'",
	} {
		if got := res.Header.Get(name); got != want {
			s.t.Errorf("%s %d: %s %q", method, res.StatusCode, name, got)
		}
	}
	return res
}

func (s *site) expect(res *http.Response, status int, body []byte) {
	s.t.Helper()
	got, err := io.ReadAll(res.Body)
	if res.StatusCode != status || err != nil || body != nil && !bytes.Equal(got, body) {
		s.t.Errorf("status %d with %d bytes, %v, want %d with %d", res.StatusCode, len(got), err, status, len(body))
	}
}

// A link is as good as the access of its device.
func TestHandlerAsksForAccess(t *testing.T) {
	s := newSite(t)
	data := pattern(100)
	link := s.link(data, "a.bin", "application/octet-stream")
	s.expect(s.get("GET", link), 200, data)
	s.broken = errors.New("the store is closed")
	s.expect(s.get("GET", link), 503, nil)
	s.broken, s.closed = nil, true
	s.expect(s.get("GET", link), 403, nil)
	s.expect(s.get("GET", link, "Range", "bytes=0-9"), 403, nil)
	s.closed = false
	s.expect(s.get("GET", link), 200, data)
}

func TestHandler(t *testing.T) {
	s := newSite(t)
	data := pattern(100_000)
	link := s.link(data, "отчёт \"1\".pdf", "application/pdf")
	res := s.get("GET", link)
	s.expect(res, 200, data)
	for name, want := range map[string]string{
		"Content-Type":        "application/pdf",
		"Content-Length":      "100000",
		"Content-Disposition": `attachment; filename="_____ _1_.pdf"; filename*=UTF-8''%D0%BE%D1%82%D1%87%D1%91%D1%82%20%221%22.pdf`,
		"Cache-Control":       "private",
		"Accept-Ranges":       "bytes",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	tag := res.Header.Get("ETag")
	s.expect(s.get("HEAD", link), 200, []byte{})
	s.expect(s.get("GET", link, "Range", "bytes=99990-"), 206, data[99990:])
	s.expect(s.get("GET", link, "Range", "bytes=-10", "If-Range", tag), 206, data[99990:])
	s.expect(s.get("GET", link, "Range", "bytes=-10", "If-Range", `"other"`), 200, data)
	s.expect(s.get("GET", link, "Range", "bytes=200000-"), 416, nil)
	s.expect(s.get("GET", link, "If-None-Match", tag), 304, []byte{})
	s.expect(s.get("POST", link), 405, nil)
	s.expect(s.get("GET", link[:len(link)-4]+"AAAA"), 403, nil)
	s.expect(s.get("GET", link+"?a=b"), 403, nil)
	s.expect(s.get("GET", s.link(nil, "empty", "")), 200, []byte{})
	if err := os.Remove(s.Path(strings.Trim(tag, `"`))); err != nil {
		t.Fatal(err)
	}
	res = s.get("GET", link)
	s.expect(res, 404, nil)
	if res.Header.Get("Cache-Control") != "no-store" {
		t.Error("an error may be cached")
	}
	s.now = t0.Add(time.Hour)
	s.expect(s.get("GET", link), 403, nil)
}

// A page of another host that may connect must be able to read its files, and to see why it cannot.
func TestPagesOfOtherOrigins(t *testing.T) {
	s := newSite(t)
	link := s.link(pattern(100), "a.bin", "")
	for _, path := range []string{link, LinkPrefix + "wrong"} {
		res := s.get("GET", path, "Origin", "https://app.example.com", "Range", "bytes=10-")
		if res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Access-Control-Expose-Headers") != "Content-Range" {
			t.Errorf("%s: %v", path, res.Header)
		}
	}
	res := s.get("OPTIONS", link, "Origin", "https://app.example.com", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "range")
	s.expect(res, 204, []byte{})
	if res.Header.Get("Access-Control-Allow-Headers") != "Range" || res.Header.Get("Access-Control-Allow-Methods") != "GET, HEAD" {
		t.Errorf("the browser's question is answered by %v", res.Header)
	}
}

func TestNothingRunsOnOurOrigin(t *testing.T) {
	s := newSite(t)
	for mimeType, want := range map[string][2]string{
		"image/png":                {"image/png", "inline"},
		"audio/wav":                {"audio/wav", "inline"},
		"video/mp4":                {"video/mp4", "inline"},
		"image/svg+xml":            {"image/svg+xml", "attachment"},
		"text/html":                {"text/html", "attachment"},
		"text/javascript":          {"text/plain", "attachment"},
		"application/x-ecmascript": {"text/plain", "attachment"},
		"text/css":                 {"text/plain", "attachment"},
		"text/plain":               {"text/plain", "attachment"},
		"text/plain\r\nX-Evil: 1":  {octetStream, "attachment"},
		"nonsense":                 {octetStream, "attachment"},
		"":                         {octetStream, "attachment"},
	} {
		res := s.get("GET", s.link([]byte("<svg onload=alert(1)>"), "a\r\nX-Evil: 1", mimeType))
		kind, _, _ := strings.Cut(res.Header.Get("Content-Disposition"), ";")
		if got := res.Header.Get("Content-Type"); got != want[0] || kind != want[1] || res.Header.Get("X-Evil") != "" {
			t.Errorf("%q: %s, %s, want %v", mimeType, got, kind, want)
		}
	}
}

func FuzzDisposition(f *testing.F) {
	f.Add("a.txt", "text/plain")
	f.Add("\"; filename=\"x\r\n", "image/svg+xml")
	f.Fuzz(func(t *testing.T, name, mimeType string) {
		d := disposition(validMime(mimeType), CleanName(name))
		if !utf8.ValidString(d) || strings.ContainsAny(d, "\r\n\x00") || strings.Count(d, `"`) != 2 || strings.Count(d, ";") != 2+strings.Count(asciiName(CleanName(name)), ";") {
			t.Fatalf("%q", d)
		}
	})
}
