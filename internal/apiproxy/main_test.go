package apiproxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/leak"
	"hermes-mobile/internal/loglimit"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/store"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	upstreamKey = "the-key-of-the-api-server"
	password    = "correct horse"
)

// cheap makes the tests quick.
var cheap = Cost{Memory: 64, Passes: 1, Lanes: 1}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a test's time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// rig is an API proxy in front of a scripted API server.
type rig struct {
	t     *testing.T
	up    *upstream
	proxy *Proxy
	users *Users
	store *store.Store
	clock *clock
	url   string
	log   *locked
	https bool
	addr  netip.Addr
}

// wide lets a test make many requests.
func wide(o *Options) {
	o.Limits = Limits{Burst: 10_000, Every: time.Millisecond, Open: 100, Turns: 100, Bodies: 64 << 20}
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, up: newUpstream(t), clock: &clock{at: time.Now()}, log: &locked{}, addr: netip.MustParseAddr("192.0.2.1")}
	s, err := store.Open(t.Context(), t.TempDir())
	ok(t, err)
	r.store = s
	t.Cleanup(func() { ok(t, s.Close()) })
	r.users = NewUsers(s, cheap, r.clock.now)
	for _, name := range []string{"anna", "bert"} {
		ok(t, r.users.Add(t.Context(), name, password))
	}
	o := Options{Store: s, Users: r.users, URL: r.up.URL, Key: upstreamKey, Jobs: true, Log: slog.New(loglimit.New(slog.NewTextHandler(r.log, nil))), Metrics: metrics.New("test"), Now: r.clock.now,
		Client: func(q *http.Request) netip.Addr {
			if addr := q.Header.Get("X-Test-Address"); addr != "" {
				return netip.MustParseAddr(addr)
			}
			return r.addr
		},
		Base: func(q *http.Request) string {
			if r.https {
				return "https://" + q.Host
			}
			return "http://" + q.Host
		},
		Own: func(q *http.Request) bool { return q.Header.Get("Origin") == "http://"+q.Host }}
	for _, c := range change {
		c(&o)
	}
	r.proxy, err = New(o)
	ok(t, err)
	srv := httptest.NewServer(r.proxy.Handler())
	r.url = srv.URL
	t.Cleanup(func() {
		r.proxy.Close()
		srv.Close()
		if text := r.logged(); strings.Contains(text, password) || strings.Contains(text, upstreamKey) {
			t.Errorf("the log holds a secret:\n%s", text)
		}
	})
	return r
}

type locked struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

// logged is what the log says so far.
func (r *rig) logged() string {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.Buffer.String()
}

// bodyOf reads an answer to its end.
func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(t, err)
	return string(text)
}

// counted is the sum of a metric.
func (r *rig) counted(name string) float64 {
	r.t.Helper()
	all, err := r.proxy.o.Metrics.Totals()
	ok(r.t, err)
	return all[name]
}

// client is an app with cookies of its own.
type client struct {
	t    *testing.T
	r    *rig
	http *http.Client
}

func (r *rig) client() *client {
	jar, err := cookiejar.New(nil)
	ok(r.t, err)
	tr := &http.Transport{DisableKeepAlives: true}
	return &client{r.t, r, &http.Client{Jar: jar, Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// login is a client that has logged in.
func (r *rig) login(name string) *client {
	r.t.Helper()
	c := r.client()
	if status, body := c.do("POST", "/auth/password-login", fmt.Sprintf(`{"provider":"basic","username":%q,"password":%q}`, name, password)); status != http.StatusOK {
		r.t.Fatalf("login: %d %s", status, body)
	}
	return c
}

func (c *client) send(ctx context.Context, method, path, body string, change ...func(*http.Request)) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.r.url+path, strings.NewReader(body))
	ok(c.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(req)
	}
	resp, err := c.http.Do(req)
	ok(c.t, err)
	return resp
}

func (c *client) do(method, path, body string, change ...func(*http.Request)) (int, string) {
	c.t.Helper()
	resp := c.send(c.t.Context(), method, path, body, change...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(c.t, err)
	return resp.StatusCode, string(text)
}

// want demands a status, and texts in the answer.
func (c *client) want(status int, method, path, body string, says ...string) string {
	c.t.Helper()
	got, text := c.do(method, path, body)
	if got != status {
		c.t.Errorf("%s %s: %d %s, want %d", method, path, got, text, status)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			c.t.Errorf("%s %s does not say %q: %s", method, path, s, text)
		}
	}
	return text
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// cookies returns what a client has, by name.
func (c *client) cookies() map[string]string {
	u, _ := url.Parse(c.r.url)
	out := map[string]string{}
	for _, k := range c.http.Jar.Cookies(u) {
		out[k.Name] = k.Value
	}
	return out
}

func (c *client) setCookies(values map[string]string) {
	u, _ := url.Parse(c.r.url)
	for name := range c.cookies() {
		c.http.Jar.SetCookies(u, []*http.Cookie{{Name: name, Path: "/", MaxAge: -1}})
	}
	for name, value := range values {
		c.http.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
	}
}

// line is the header that a client's cookies make.
func (c *client) line() string {
	var parts []string
	for name, value := range c.cookies() {
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, "; ")
}

// raw makes a request whose path is sent as it is written, and returns the status.
func (r *rig) raw(method, path, cookie, body string) int {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	ok(r.t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nCookie: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", method, path, cookie, len(body), body)
	ok(r.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	ok(r.t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}
