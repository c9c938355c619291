package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/test/e2e"
)

// What people put before a server without thinking of who asks. PORT is the server's, LISTEN the proxy's.
const (
	// The two examples of nginx's own page on WebSockets, with the server as the backend.
	nginxWebSocket = `
map $http_upgrade $connection_upgrade {
    default upgrade;
    ''      close;
}
server {
    listen 127.0.0.1:LISTEN;
    location / {
        proxy_pass http://127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $connection_upgrade;
    }
}
`
	nginxUpgrade = `
server {
    listen 127.0.0.1:LISTEN;
    location / {
        proxy_pass http://127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection "upgrade";
    }
}
`
	// The defaults of Debian's package, with what every introduction to HAProxy adds.
	haproxyDefault = `
defaults
	mode	http
	option	dontlognull
	timeout connect 5000
	timeout client  50000
	timeout server  50000

frontend in
	bind 127.0.0.1:LISTEN
	default_backend out

backend out
	server one 127.0.0.1:PORT
`
	haproxyTCP = `
defaults
	mode	tcp
	timeout connect 5000
	timeout client  50000
	timeout server  50000

listen in
	bind 127.0.0.1:LISTEN
	server one 127.0.0.1:PORT
`
)

// careless starts each of them before a server of its own, which has the proxy's address as its public one.
func careless(t *testing.T, settings []string, f func(t *testing.T, s *e2e.Server, base string)) {
	t.Helper()
	for name, tt := range map[string]struct{ kind, bare string }{
		"nginx, WebSocket example": {"nginx", nginxWebSocket}, "nginx, upgrade": {"nginx", nginxUpgrade}, "HAProxy": {"haproxy", haproxyDefault},
		"HAProxy as a TCP forward": {"haproxy", haproxyTCP}, "a TCP forward": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.kind == "" {
				s := e2e.NewServer(t)
				base := forward(t, s.Port)
				s.Env = append(s.Env, append(settings, "MOBILE_PUBLIC_URL="+base)...)
				s.Agent = "demo"
				s.Start()
				f(t, s, base)
				return
			}
			front := newFront(t, tt.kind)
			front.bare = tt.bare
			p := newPlace(t, front, append(settings, "MOBILE_PUBLIC_URL="+front.url())...)
			f(t, p.server, front.url())
		})
	}
}

// forward is a plain TCP forward to a port of this machine, such as socat, ssh -R or a container's.
func forward(t *testing.T, port int) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				up, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					return
				}
				defer up.Close()
				var both sync.WaitGroup
				both.Go(func() { pipe(up, c) })
				both.Go(func() { pipe(c, up) })
				both.Wait()
			})
		}
	})
	return "http://" + l.Addr().String()
}

// ask is a request of a stranger, or of somebody with a cookie; header lines come in pairs, "Host" among them.
func ask(t *testing.T, client *http.Client, method, address string, header ...string) (*http.Response, string) {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Hermes-Mobile-Admin", "1")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", address[:strings.Index(address, "/admin")])
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// browser is a client that follows no redirect and keeps no connection.
func browser() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

const (
	adminSecret   = "8888888888888888888888888888888888888888888888888888888888888888"
	metricsSecret = "9999999999999999999999999999999999999999999999999999999999999999"
)

// A stranger gets nothing through a proxy that hides who asks, whatever Host and headers come along: not the admin UI, whether it is
// for this machine or for everywhere, not the metrics, and of /readyz the codes. The doctor says what is wrong with the proxy.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	for mode, settings := range map[string][]string{"local": {"MOBILE_METRICS_TOKEN=" + metricsSecret}, "on": {"MOBILE_ADMIN_TOKEN=" + adminSecret}, "off": {"MOBILE_ADMIN=off"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			careless(t, settings, func(t *testing.T, s *e2e.Server, base string) {
				client := browser()
				secrets := []string{s.Data, "hermes_mobile_", `"details":true`, `"devices":`}
				link := adminLink(t, s)
				hosts := []string{"", "localhost", "127.0.0.1", fmt.Sprintf("localhost:%d", s.Port), fmt.Sprintf("127.0.0.1:%d", s.Port), fmt.Sprintf("[::1]:%d", s.Port), "agent.example.com"}
				headers := [][]string{nil, {"X-Forwarded-For", "127.0.0.1"}, {"X-Forwarded-Host", fmt.Sprintf("127.0.0.1:%d", s.Port), "X-Forwarded-Proto", "https"},
					{"Forwarded", "for=127.0.0.1;host=localhost"}, {"Cookie", fmt.Sprintf("hm_admin_%d=%s; __Host-hm_admin_%d=x", s.Port, strings.Repeat("A", 26), s.Port)},
					{"Authorization", "Bearer " + s.Token}}
				for _, host := range hosts {
					for _, more := range headers {
						header := more
						if host != "" {
							header = append([]string{"Host", host}, more...)
						}
						for path, method := range map[string]string{
							"/admin/api/overview": "GET", "/admin/api/doctor": "GET", "/admin/api/status": "GET", "/admin/api/deliveries?limit=1": "GET", "/metrics": "GET", "/readyz": "GET",
							"/admin/enter?key=" + strings.Repeat("A", 26): "GET", "/admin/api/pair": "POST", "/admin/api/tokens/add": "POST", "/admin/api/login": "POST",
						} {
							resp, body := ask(t, client, method, base+path, header...)
							if len(resp.Cookies()) > 0 {
								t.Errorf("%s with %q: a cookie", path, header)
							}
							allowed := map[string][]int{"/readyz": {200}}[path]
							if resp.StatusCode < 300 && !slices.Contains(allowed, resp.StatusCode) {
								t.Errorf("%s %s with %q: %s", method, path, header, resp.Status)
							}
							for _, secret := range secrets {
								if strings.Contains(body, secret) {
									t.Errorf("%s with %q tells %s: %s", path, header, secret, body)
								}
							}
						}
					}
				}
				if link != "" {
					onlyTheOwner(t, s, base, link)
				}
				report := doctor(t, s)
				for _, code := range []string{"admin_open", "metrics_open", "health_open"} {
					if slices.Contains(report, code) {
						t.Errorf("the doctor says %s", code)
					}
				}
				if !slices.Contains(report, "proxy_hides_client") {
					t.Errorf("the doctor says %q, and nothing of the proxy", report)
				}
			})
		})
	}
}

// adminLink is a link from the admin socket, empty where the admin UI is off.
func adminLink(t *testing.T, s *e2e.Server) string {
	t.Helper()
	out, err := s.CLI(t.Context(), "admin", "--json")
	if err != nil {
		if !strings.Contains(out, "MOBILE_ADMIN") {
			t.Fatalf("%v\n%s", err, out)
		}
		return ""
	}
	var link struct{ URL string }
	if err := json.Unmarshal([]byte(out), &link); err != nil {
		t.Fatal(err)
	}
	return link.URL
}

// onlyTheOwner opens a link on this machine, and then tries with all that is left of it, as a stranger.
func onlyTheOwner(t *testing.T, s *e2e.Server, base, link string) {
	t.Helper()
	client := browser()
	var err error
	if client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	if resp, _ := ask(t, client, http.MethodGet, link); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("the link: %s", resp.Status)
	}
	page := pageOf(t, client, s.Base())
	if resp, body := ask(t, client, http.MethodGet, s.Base()+"/admin/api/overview", "X-Hermes-Mobile-Admin", page); resp.StatusCode != http.StatusOK || !strings.Contains(body, s.Data) {
		t.Errorf("the owner, on this machine: %s", resp.Status)
	}
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{link, base + u.RequestURI()} {
		if resp, _ := ask(t, browser(), http.MethodGet, again); len(resp.Cookies()) > 0 {
			t.Errorf("a stranger opens the link a second time: %s", resp.Status)
		}
	}
}

// pageOf is the secret that the page of a login gets with its first request.
func pageOf(t *testing.T, client *http.Client, base string, header ...string) string {
	t.Helper()
	_, body := ask(t, client, http.MethodGet, base+"/admin/api/session", header...)
	var access struct{ Access, Page string }
	if err := json.Unmarshal([]byte(body), &access); err != nil || access.Access != "session" || access.Page == "" {
		t.Fatalf("the page gets %s", body)
	}
	return access.Page
}

// doctor returns the codes of what hermes-mobile doctor finds.
func doctor(t *testing.T, s *e2e.Server) (codes []string) {
	t.Helper()
	out, err := s.CLI(t.Context(), "doctor", "--json")
	var report struct {
		Findings []struct{ Code string }
	}
	if json.Unmarshal([]byte(out), &report) != nil {
		t.Fatalf("doctor: %v\n%s", err, out)
	}
	for _, f := range report.Findings {
		codes = append(codes, f.Code)
	}
	return codes
}

// Real proxies that open something: they add a proof of their own. The doctor names each part.
func TestDoctorFindsOpenProxies(t *testing.T) {
	t.Parallel()
	adds := `
		proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
		proxy_set_header Host $http_host;
		proxy_set_header Authorization "Bearer ` + metricsSecret + `";
		proxy_http_version 1.1;`
	for name, tt := range map[string]struct {
		kind, bare string
		want       []string
	}{
		"nginx with the metrics token": {"nginx", strings.Replace(nginxWebSocket, "proxy_http_version 1.1;", adds, 1), []string{"health_open", "metrics_open"}},
		"nginx with the admin socket": {"nginx", strings.Replace(nginxWebSocket, "location / {", "location /admin/api/ { proxy_pass http://unix:SOCKET:/; }\n location / {\n proxy_set_header X-Forwarded-For $remote_addr;", 1),
			[]string{"admin_open"}},
		"HAProxy with the metrics token": {"haproxy", haproxyDefault + "\toption forwardfor\n\thttp-request set-header Authorization \"Bearer " + metricsSecret + "\" if { path /metrics }\n", []string{"metrics_open"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := newFront(t, tt.kind)
			server := e2e.NewServer(t, "MOBILE_METRICS_TOKEN="+metricsSecret, "MOBILE_PUBLIC_URL=http://127.0.0.1:"+fmt.Sprint(front.port))
			server.Agent = "demo"
			server.Start()
			front.bare = strings.Replace(tt.bare, "SOCKET", filepath.Join(server.Data, "admin.sock"), 1)
			front.start(server)
			var open []string
			for _, code := range doctor(t, server) {
				if strings.HasSuffix(code, "_open") || code == "proxy_hides_client" {
					open = append(open, code)
				}
			}
			if slices.Sort(open); !slices.Equal(open, tt.want) {
				t.Errorf("the doctor says %q, want %q", open, tt.want)
			}
		})
	}
}

// With the recipes the doctor has nothing to say of strangers, and the owner gets in through the proxy: with the admin token, and with a
// link to the public address.
func TestOwnerThroughTheRecipes(t *testing.T) {
	every(t, func(t *testing.T, kind string) {
		f := newFront(t, kind)
		p := newPlace(t, f, "MOBILE_PUBLIC_URL="+f.url(), "MOBILE_ADMIN_TOKEN="+adminSecret)
		var link struct {
			Elsewhere string `json:"public_url"`
		}
		p.server.JSON(t, &link, "admin")
		if !strings.HasPrefix(link.Elsewhere, f.url()+"/admin/enter?key=") {
			t.Fatalf("the link is %q", link.Elsewhere)
		}
		client := f.client("")
		defer client.CloseIdleConnections()
		in := func(cookie *http.Cookie, page string) int {
			t.Helper()
			resp, _ := ask(t, client, http.MethodPost, f.url()+"/admin/api/home/clear", "Cookie", cookie.Name+"="+cookie.Value, "X-Hermes-Mobile-Admin", page)
			return resp.StatusCode
		}
		resp, _ := ask(t, client, http.MethodGet, link.Elsewhere)
		cookies := resp.Cookies()
		if len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-") || !cookies[0].Secure {
			t.Fatalf("by the link: %s, %v", resp.Status, cookies)
		}
		if status := in(cookies[0], pageOf(t, client, f.url(), "Cookie", cookies[0].Name+"="+cookies[0].Value)); status != http.StatusOK {
			t.Errorf("by the link: %d", status)
		}
		if resp, _ := ask(t, client, http.MethodGet, link.Elsewhere); len(resp.Cookies()) > 0 {
			t.Errorf("by the link, again: %s", resp.Status)
		}
		login, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url()+"/admin/api/login", strings.NewReader(`{"token":"`+adminSecret+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		login.Header = http.Header{"X-Hermes-Mobile-Admin": {"1"}, "Content-Type": {"application/json"}, "Origin": {f.url()}}
		resp, err = client.Do(login)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var access struct{ Page string }
		if err := json.NewDecoder(resp.Body).Decode(&access); err != nil {
			t.Fatal(err)
		}
		if cookies := resp.Cookies(); len(cookies) != 1 || in(cookies[0], access.Page) != http.StatusOK {
			t.Errorf("by the token: %s, %v", resp.Status, cookies)
		}
		if status := in(&http.Cookie{Name: cookies[0].Name, Value: strings.Repeat("A", 26)}, access.Page); status != http.StatusUnauthorized {
			t.Errorf("by a cookie of nobody: %d", status)
		}
	})
}
