package apiproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHeaders: the API server sees the key, what it needs, and nothing else; the client sees
// nothing of the key's.
func TestHeaders(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	resp := c.send(t.Context(), "GET", "/api/model/options?refresh=1&refresh=2&x=1", "", header("Origin", "https://app.example.com"), header("X-Forwarded-For", "10.1.1.1"), header("Forwarded", "for=x"), header("X-Real-Ip", "10.1.1.1"),
		header("Authorization", "Basic bWluZTptaW5l"), header("Accept", "application/json"), header("Accept-Encoding", "gzip"), header("Last-Event-Id", "7"), header("Connection", "X-Custom, Upgrade"), header("X-Custom", "1"), header("Upgrade", "websocket"),
		header("Te", "trailers"), header(sessionIDHeader, "somebodys"))
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("Server") != "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	got, _ := r.up.last("/api/model/options")
	if got.URL.RawQuery != "refresh=1" || got.Host != strings.TrimPrefix(r.up.URL, "http://") {
		t.Errorf("%s at %s", got.URL, got.Host)
	}
	want := http.Header{"Authorization": {"Bearer " + upstreamKey}, "Accept": {"application/json"}, "Last-Event-Id": {"7"}, "User-Agent": {"hermes-mobile"}}
	for name := range got.Header {
		if got.Header.Get(name) != want.Get(name) {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
	for name := range want {
		if got.Header.Get(name) != want.Get(name) {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
}

func TestOpenAndClosedPaths(t *testing.T) {
	r := newRig(t)
	r.client().want(200, "GET", "/health", "", `"platform":"hermes-agent"`)
	r.client().want(200, "GET", "/v1/health", "")
	c := r.login("anna")
	for _, path := range []string{"/health/detailed", "/v1/browser-control/ws", "/v1/artifacts/download/x", "/v1/room-members/x", "/api/platforms/x/events", "/api/cron/fire", "/v1/other", "/p/default/v1/models", "/api/auth/ws-ticket"} {
		for _, method := range []string{"GET", "POST"} {
			if status, text := c.do(method, path, "{}"); status != 404 {
				t.Errorf("%s %s: %d %s", method, path, status, text)
			}
		}
	}
	if status, _ := c.do("PUT", "/api/sessions", "{}"); status != 405 {
		t.Errorf("another method: %d", status)
	}
	var all struct {
		Object    string
		Auth      struct{ Type string }
		Features  map[string]json.RawMessage
		Endpoints map[string]json.RawMessage
	}
	ok(t, json.Unmarshal([]byte(c.want(200, "GET", "/v1/capabilities", "")), &all))
	if all.Object != "hermes.api_server.capabilities" || all.Auth.Type != "cookie" || len(all.Features) != 2 || len(all.Endpoints) != 10 || all.Endpoints["job_run"] == nil || all.Endpoints["runs"] == nil || all.Endpoints["session"] == nil {
		t.Errorf("%+v", all)
	}
}

// TestForeignPages: what a page of another origin has a browser do changes nothing.
func TestForeignPages(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	for _, h := range [][2]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if status, text := c.do("POST", "/api/sessions", "{}", header(h[0], h[1])); status != 403 || !strings.Contains(text, "cross_origin") {
			t.Errorf("%v: %d %s", h, status, text)
		}
	}
	if status, _ := c.do("POST", "/api/sessions", "{}", header("Origin", r.url), header("Sec-Fetch-Site", "same-origin")); status != 201 {
		t.Errorf("an own page: %d", status)
	}
	if got, _ := r.up.last("/api/sessions"); got.Header.Get("Origin") != "" {
		t.Error("the API server is told the origin")
	}
}

// TestStream: what is streamed arrives as it comes, and a client that goes away ends it.
func TestStream(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	id := c.session()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	resp := c.send(ctx, "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"x"}`, header("Accept-Encoding", "gzip"))
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Content-Encoding") != "" {
		t.Errorf("%v", resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	for _, text := range []string{"one", "two\u2028still two", strings.Repeat("x", 3<<20)} {
		r.up.next <- "data: " + text + "\n\n" // the next one comes only when this has arrived
		line, err := lines.ReadString('\n')
		ok(t, err)
		if line != "data: "+text+"\n" {
			t.Fatalf("%.80q arrived, of %d bytes", line, len(line))
		}
		_, err = lines.ReadString('\n')
		ok(t, err)
	}
	if n := r.counted("front_turns"); n != 1 {
		t.Errorf("%v turns", n)
	}
	leave()
	select {
	case <-r.up.gone:
	case <-time.After(10 * time.Second):
		t.Error("the API server does not hear that the client is gone")
	}

	// One that ends, ends for the client, too.
	resp = c.send(t.Context(), "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"x"}`)
	defer resp.Body.Close()
	close(r.up.next)
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("%q %v", rest, err)
	}
}

// TestBodies: the API server always knows a length, and what is too long does not reach it.
func TestBodies(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	chunked := func(body io.Reader) func(*http.Request) {
		return func(q *http.Request) { q.Body, q.ContentLength = io.NopCloser(body), -1 }
	}
	if status, text := c.do("POST", "/api/sessions", "", chunked(strings.NewReader(`{"title":"by chunks"}`)), header("Content-Type", "application/json")); status != 201 {
		t.Errorf("%d %s", status, text)
	}
	if got, body := r.up.last("/api/sessions"); got.ContentLength != 21 || body != `{"title":"by chunks"}` {
		t.Errorf("%d bytes: %s", got.ContentLength, body)
	}
	id := c.session()
	full := `{"message":"` + strings.Repeat("x", maxBody-14) + `"}`
	close(r.up.next)
	c.want(200, "POST", "/api/sessions/"+id+"/chat/stream", full)
	if got, body := r.up.last("/api/sessions/" + id + "/chat/stream"); got.ContentLength != maxBody || body != full {
		t.Errorf("%d bytes", got.ContentLength)
	}
	before := len(r.up.seen)
	if status, text := c.do("POST", "/api/sessions/"+id+"/chat/stream", "", chunked(strings.NewReader(full+"x"))); status != 413 || !strings.Contains(text, "body_too_large") {
		t.Errorf("by chunks: %d %s", status, text)
	}
	// A length that is too long is refused before the body comes.
	q, err := http.NewRequestWithContext(t.Context(), "POST", r.url+"/api/sessions/"+id+"/chat/stream", io.NopCloser(&never{t.Context()}))
	ok(t, err)
	q.ContentLength = maxBody + 1
	resp, err := c.http.Do(q)
	ok(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("%d", resp.StatusCode)
	}
	if len(r.up.seen) != before {
		t.Errorf("the API server was asked %d times", len(r.up.seen)-before)
	}
	if n := r.proxy.held.Load(); n != 0 {
		t.Errorf("%d bytes are counted still", n)
	}
}

// never is a body that does not come.
type never struct{ ctx context.Context }

func (n *never) Read([]byte) (int, error) { <-n.ctx.Done(); return 0, io.EOF }

func TestLimits(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Limits = Limits{Burst: 8, Every: time.Minute, Open: 3, Turns: 1, Bodies: 1 << 20}
	})
	anna, bert := r.login("anna"), r.login("bert")
	id := anna.session()
	resp := anna.send(t.Context(), "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"x"}`)
	defer resp.Body.Close()
	second := anna.send(t.Context(), "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"x"}`)
	_ = second.Body.Close()
	if second.StatusCode != 429 || second.Header.Get("Retry-After") != "1" {
		t.Errorf("a second turn: %d", second.StatusCode)
	}
	anna.want(503, "POST", "/api/sessions", `{"title":"`+strings.Repeat("x", 2<<20)+`"}`, "busy")
	for range 5 {
		anna.want(200, "GET", "/v1/models", "")
	}
	anna.want(429, "GET", "/v1/models", "", `"code":"rate_limit_exceeded"`)
	bert.want(200, "GET", "/v1/models", "")
	r.clock.pass(time.Minute)
	anna.want(200, "GET", "/v1/models", "")
	close(r.up.next)
	_, _ = io.Copy(io.Discard, resp.Body)
}

// TestUpstreamTrouble: a fault behind the proxy never looks like a login that has ended.
func TestUpstreamTrouble(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Key = "another-key-than-it-has" })
	c := r.login("anna")
	c.want(502, "GET", "/v1/models", "", `"code":"upstream_key_refused"`, `"param":null`)
	if err := r.proxy.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), "rejects the key") {
		t.Errorf("%v", err)
	}
	r.up.Close()
	c.want(502, "GET", "/v1/models", "", `"code":"upstream_unavailable"`)
	c.want(502, "GET", "/api/sessions/x", "", "upstream_unavailable")
	c.want(502, "GET", "/health", "", "upstream_unavailable")
	c.want(200, "GET", "/api/auth/me", "")
	if err := r.proxy.Reach(t.Context()); err == nil {
		t.Error("it is reached")
	}
	if n := r.counted("front_requests_total"); n != 3 {
		t.Errorf("%v requests were counted", n)
	}
}

// TestUnsure: where Hermes cannot say whose a session is, nobody gets it, and nobody is told that
// there is none.
func TestUnsure(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	c.want(502, "GET", "/api/sessions/broken", "", "upstream_unavailable")
	c.want(502, "POST", "/v1/runs", `{"input":"x","session_id":"broken"}`)
	c.want(502, "POST", "/api/sessions", `{"id":"broken"}`)
	if owner, err := r.store.FrontOwner(t.Context(), "session", "broken"); err != nil || owner != "" {
		t.Errorf("it is %q's (%v)", owner, err)
	}
}

// TestClose: requests end when the server does, and no login with them.
func TestClose(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	id := c.session()
	resp := c.send(t.Context(), "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"x"}`)
	defer resp.Body.Close()
	r.proxy.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream looks whole")
	}
	c.want(200, "GET", "/api/auth/me", "")
}
