package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// answers reads all answers on a connection that is closed by the server, or by us when nothing more is asked.
func answers(t testing.TB, s *e2e.Server, request string) (statuses []int, bodies string) {
	t.Helper()
	c := dial(t, s, request)
	in := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses, bodies
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		statuses = append(statuses, resp.StatusCode)
		bodies += string(b)
		if err != nil || resp.Close || resp.StatusCode == http.StatusSwitchingProtocols {
			_ = c.Close()
			return statuses, bodies
		}
	}
}

// everything is a server with each of its endpoints switched on.
func everything(t testing.TB) (*e2e.Server, *e2e.Phone) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(api.Close)
	return start(t, "MOBILE_PUSH=on", "MOBILE_PUSH_CONTACT=mailto:me@example.com", "MOBILE_ADMIN_TOKEN="+strings.Repeat("7", 64),
		"MOBILE_FRONT_API=1", "MOBILE_API_URL="+api.URL, "MOBILE_API_KEY=the-key-of-the-api-server")
}

// everyAnswer reads until the server closes, also behind an answer that says that nothing follows.
func everyAnswer(t testing.TB, s *e2e.Server, request string) (statuses []int, closed bool) {
	t.Helper()
	c := dial(t, s, "")
	go func() { _, _ = io.WriteString(c, request) }()      // it may be cut off in the middle
	_ = c.SetReadDeadline(time.Now().Add(8 * time.Second)) // before an idle connection would be closed in any case
	all, err := io.ReadAll(c)
	in := bufio.NewReader(bytes.NewReader(all))
	for {
		resp, bad := http.ReadResponse(in, nil)
		if bad != nil {
			var timeout net.Error
			return statuses, !errors.As(err, &timeout) || !timeout.Timeout()
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		statuses = append(statuses, resp.StatusCode)
	}
}

// Requests that a proxy would read in another way: this server refuses them, or reads them as the standard says, and closes the connection: what
// follows on it may be a request that somebody has smuggled past the proxy, and is never answered.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	s, p := start(t)
	before := s.Memory(t)
	const end = "Host: 127.0.0.1\r\n"
	const chunks = "5\r\nhello\r\n0\r\n\r\n"
	second := "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 192.0.2.9\r\nConnection: close\r\n\r\n"
	for name, tc := range map[string]struct {
		request string
		first   []int
		most    int // answers
	}{
		"both lengths":              {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second, []int{400, 405}, 1},
		"both lengths, turned":      {"POST /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunks + second, []int{400, 405}, 1},
		"both lengths, read":        {"POST /push/action HTTP/1.1\r\n" + end + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + second, []int{400, 404, 405}, 1},
		"both lengths, odd case":    {"GET /healthz HTTP/1.1\r\n" + end + "content-length: 4\r\ntransfer-ENCODING: Chunked\r\n\r\n" + chunks + second, []int{200, 400}, 1},
		"both lengths, folded":      {"GET /healthz HTTP/1.1\r\n" + end + "Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + chunks + second, []int{200, 400, 501}, 1},
		"both lengths, line feeds":  {"GET /healthz HTTP/1.1\n" + "Host: x\nContent-Length: 4\nTransfer-Encoding: chunked\n\n" + chunks + second, []int{200, 400}, 1},
		"both lengths, many":        {"GET /healthz HTTP/1.1\r\n" + end + "Content-Length: 4\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + second, []int{200, 400}, 1},
		"both lengths, no number":   {"GET /healthz HTTP/1.1\r\n" + end + "Content-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + second, []int{200, 400}, 1},
		"both lengths, an upgrade":  {"GET /ws HTTP/1.1\r\n" + end + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + second, []int{400}, 1},
		"an upgrade with a body":    {"GET /ws HTTP/1.1\r\n" + end + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nContent-Length: 4\r\n\r\nabcd", []int{400}, 1},
		"chunks only":               {"POST /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding: chunked\r\n\r\n" + chunks + second, []int{405}, 1},
		"HTTP/1.0 with both":        {"POST /healthz HTTP/1.0\r\n" + end + "Connection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello" + second, []int{400, 405}, 1},
		"HTTP/1.0 kept alive":       {"GET /healthz HTTP/1.0\r\n" + end + "Connection: keep-alive\r\n\r\n" + second, []int{200}, 1},
		"a chunk with an extension": {"GET /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding: chunked\r\n\r\n5;x=\n\r\nhello\r\n0\r\n\r\n" + second, []int{200, 400}, 1},
		"a trailer":                 {"GET /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 500\r\n\r\n" + second, []int{200, 400}, 1},
		"the same length twice":     {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + second, []int{400, 405}, 2},
		"two lengths":               {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + second, []int{400}, 1},
		"a list of lengths":         {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: 5, 6\r\n\r\nhello" + second, []int{400}, 1},
		"a signed length":           {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: +5\r\n\r\nhello" + second, []int{400}, 1},
		"a negative length":         {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: -5\r\n\r\nhello" + second, []int{400}, 1},
		"an endless length":         {"POST /healthz HTTP/1.1\r\n" + end + "Content-Length: 99999999999999999999\r\n\r\nhello" + second, []int{400}, 1},
		"a space before a colon":    {"POST /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nhello" + second, []int{400}, 1},
		"an unknown encoding":       {"POST /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + second, []int{400, 501}, 1},
		"two encodings":             {"POST /healthz HTTP/1.1\r\n" + end + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + second, []int{400, 501}, 1},
		"a folded header":           {"GET /healthz HTTP/1.1\r\n" + end + "X: a\r\n b\r\n\r\n", []int{200, 400}, 1},
		"a bare line feed":          {"GET /healthz HTTP/1.1\r\nX: a\x00b\r\n" + end + "\r\n", []int{400}, 1},
		"two hosts":                 {"GET /healthz HTTP/1.1\r\n" + end + end + "\r\n", []int{400}, 1},
		"no host":                   {"GET /healthz HTTP/1.1\r\n\r\n", []int{400}, 1},
		"a bad chunk":               {"POST /push/action HTTP/1.1\r\n" + end + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + second, []int{400, 404, 405}, 1},
		"an unknown version":        {"GET /healthz HTTP/9.9\r\n" + end + "\r\n", []int{400, 505}, 1},
		"HTTP/2 by prior notice":    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400, 404, 405, 505}, 1},
		"not HTTP":                  {"\x00\x01\x02\x03\r\n\r\n", []int{400}, 1},
		"a huge header":             {"GET /healthz HTTP/1.1\r\n" + end + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", []int{431}, 1},
		"many headers":              {"GET /healthz HTTP/1.1\r\n" + end + strings.Repeat("X: y\r\n", 10_000) + "\r\n", []int{431}, 1},
		"a huge path":               {"GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\n" + end + "\r\n", []int{414, 431}, 1},
	} {
		request := tc.request
		if !strings.Contains(request, "Connection: ") {
			request = strings.Replace(request, "HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n", 1)
		}
		statuses, closed := everyAnswer(t, s, request)
		if !closed {
			t.Errorf("%s: the connection is kept open", name)
		}
		if len(statuses) == 0 && strings.HasPrefix(name, "a huge") || len(statuses) == 0 && name == "many headers" {
			continue // cut off while it was still writing
		}
		if len(statuses) == 0 || len(statuses) > tc.most || !has(tc.first, statuses[0]) {
			t.Errorf("%s: got %v, want %v, at most %d", name, statuses, tc.first, tc.most)
		}
	}
	unharmed(t, s, p, before, 32<<20)
}

func has(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// Paths that lead elsewhere, at every endpoint: nothing of the machine is given away, and nothing breaks.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	s, p := everything(t)
	before := s.Memory(t)
	odd := []string{"..", "../", "../../../../../../etc/passwd", "..%2f..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "..\\..\\etc\\passwd",
		"....//....//etc/passwd", "%00", "x%00.js", "%c0%ae%c0%ae/etc/passwd", "%", "%zz", "\xff\xfe", "//etc/passwd", ";a=b", "?%", "#", "x?token=1", strings.Repeat("a/", 5000)}
	for _, base := range []string{"/", "//", "/ws/", "/media/", "/relay/", "/relay/media/", "/relay/policy/", "/push/action/", "/healthz/", "/readyz/", "/metrics/",
		"/admin/", "/admin/api/", "/assets/", "/api/", "/v1/", "/auth/", "/login/", "http://evil.example/", "http://127.0.0.1/media/"} {
		for _, path := range odd {
			for _, method := range []string{"GET", "POST"} {
				statuses, body := answers(t, s, fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", method, base, path))
				if len(statuses) != 1 || statuses[0] >= 500 || strings.Contains(body, "root:") || strings.Contains(body, "link_key") {
					t.Errorf("%s %s%.40s: %v %.80q", method, base, path, statuses, body)
				}
			}
		}
	}
	for _, line := range []string{"OPTIONS * HTTP/1.1", "CONNECT 127.0.0.1:22 HTTP/1.1", "TRACE / HTTP/1.1", "DELETE /media/x HTTP/1.1", "FLY /ws HTTP/1.1"} {
		if statuses, _ := answers(t, s, line+"\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"); len(statuses) != 1 || statuses[0] >= 500 && statuses[0] != 501 {
			t.Errorf("%s: %v", line, statuses)
		}
	}
	unharmed(t, s, p, before, 32<<20)
}

// Bodies that are larger than they look, or deeper: read as they came, never unpacked, and refused.
func TestBodies(t *testing.T) {
	t.Parallel()
	s, p := everything(t)
	before := s.Memory(t)
	most := watch(t, s)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
	_ = z.Close()
	var n atomic.Int64
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/push/action", "/auth/password-login", "/auth/logout", "/admin/api/login", "/admin/api/pair", "/relay/media", "/relay/policy", "/v1/chat/completions", "/api/sessions", "/healthz", "/ws"} {
		for name, body := range map[string]string{
			"packed":  packed.String(),
			"deep":    strings.Repeat(`{"token":`, 5000),
			"deeper":  strings.Repeat("[", 1<<20),
			"long":    `{"token":"` + strings.Repeat("x", 4<<20) + `"}`,
			"binary":  strings.Repeat("\xff\x00", 1000),
			"nothing": "",
		} {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					req, err := http.NewRequestWithContext(soon(t), http.MethodPost, s.Base()+path, io.NopCloser(strings.NewReader(body))) // chunked
					ok(t, err)
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("X-Hermes-Mobile-Admin", "1")
					req.Header.Set("Origin", s.Base())
					req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n.Add(1)%250)) // not the owner on this machine
					if name == "packed" {
						req.Header.Set("Content-Encoding", "gzip")
					}
					resp, err := client.Do(req)
					if err != nil {
						return // cut off while it was still writing
					}
					defer resp.Body.Close()
					if resp.StatusCode < 300 || resp.StatusCode >= 500 {
						t.Errorf("%s, %s: %s", path, name, resp.Status)
					}
				})
			}
			wg.Wait()
		}
	}
	if peak := most(); peak > before+96<<20 {
		t.Errorf("the bodies took %.0f MiB", (peak-before)/(1<<20))
	}
	unharmed(t, s, p, before, 48<<20)
	quietLog(t, s)
}

// Wrong bearers of gateways by the thousand: each is refused, the log says so now and then, and the gateway gets in.
func TestRelayGuesses(t *testing.T) {
	t.Parallel()
	s := e2e.NewServer(t, "MOBILE_LOG_LEVEL=info").Start()
	p := e2e.NewPhone(t, s, "paired")
	g := gateway.New(gateway.Config{URL: s.Base(), ID: s.ID, Secret: s.Secret, Kind: true})
	t.Cleanup(g.Close)
	p.Online()
	p.Ask("echo 0 before", "reply 0 before")
	before := s.Memory(t)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 400 {
				path := []string{"/relay", "/relay/policy", "/relay/media", "/relay/media/" + strings.Repeat("y", 5000)}[i%4]
				method := []string{"GET", "POST", "POST", "GET"}[i%4]
				req, err := http.NewRequestWithContext(soon(t), method, s.Base()+path, nil)
				ok(t, err)
				req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i%250))
				req.Header.Set("Authorization", []string{"Bearer x", "Bearer " + strings.Repeat("A", 5000), "Basic eDp5", "Bearer Z3ctZTJlOjk5OTk5OTk5OTk6MDA", ""}[(i+worker)%5])
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s %s: %s", method, path, resp.Status)
				}
			}
		})
	}
	wg.Wait()
	p.Ask("echo 1 after", "reply 1 after")
	if now := s.Memory(t); now > before+48<<20 {
		t.Errorf("the guesses took %.0f MiB", (now-before)/(1<<20))
	}
	quietLog(t, s)
	if log := s.LogTail(1 << 30); strings.Contains(log, s.Secret) || strings.Contains(log, "yyyy") {
		t.Error("the log holds the secret, or what a stranger sent")
	}
}
