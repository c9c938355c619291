package server

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/internal/doctor"
)

// opened are the codes of the issues about exposed parts.
var opened = []string{"admin_open", "metrics_open", "health_open", "proxy_hides_client"}

// A proxy that adds a proof of its own has strangers read what is not for them, and the doctor
// finds each part of it.
func TestDoctorFindsWhatIsOpen(t *testing.T) {
	const metrics = "a-token-for-metrics-0123456789abcdef"
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_METRICS_TOKEN="+metrics, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL=http://agent.example")
	// As it is meant to be: nothing is open, by whichever name.
	if p, list := r.tries(r.proxy(nil), slow); p.Result != doctor.PublicGood || len(list) != 0 {
		t.Fatalf("a proxy as it should be: %+v %q", p, codesOf(list))
	}
	session, page := r.server.logins.sessions.Admit()
	login := func(out *http.Request) {
		out.AddCookie(&http.Cookie{Name: "hm_admin_" + r.server.addresses.port(), Value: session})
	}
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   []string
	}{
		"adds the metrics token": {func(out *http.Request) { out.Header.Set("Authorization", "Bearer "+metrics) }, []string{"metrics_open", "health_open"}},
		"adds it in one place": {func(out *http.Request) {
			if out.URL.Path == "/metrics" {
				out.Header.Set("Authorization", "Bearer "+metrics)
			}
		}, []string{"metrics_open"}},
		"adds it for one name": {func(out *http.Request) {
			if out.Header.Get("X-Forwarded-Host") == "localhost" {
				out.Header.Set("Authorization", "Bearer "+metrics)
			}
		}, []string{"metrics_open", "health_open"}},
		"adds a login":                    {func(out *http.Request) { login(out); out.Header.Set(ownerHeader, page) }, []string{"admin_open", "metrics_open", "health_open"}},
		"adds the cookie of one, no more": {login, []string{"metrics_open", "health_open"}},
	} {
		_, list := r.tries(r.proxy(tt.change), slow)
		if got := codesOf(doctor.Shorten(list)); !slices.Equal(got, tt.want) {
			t.Errorf("a proxy that %s: %q, want %q", name, got, tt.want)
		}
	}
	_, list := r.tries(r.proxy(func(out *http.Request) { login(out); out.Header.Set(ownerHeader, page) }), slow)
	for _, f := range []doctor.Issue{mustFind(t, list, "admin_open", "strangers", "restart the server"), mustFind(t, list, "metrics_open", "strangers", "Authorization"), mustFind(t, list, "health_open", "strangers", "Authorization")} {
		if f.Severity != doctor.Error {
			t.Errorf("%s is a %s", f.Code, f.Severity)
		}
	}
	for _, below := range []string{"/admin/api", ""} {
		_, list := r.tries(r.socketBehind(below), slow)
		mustFind(t, list, "admin_open", "controls this server")
	}
}

// socketBehind is a proxy that passes requests below a path to the admin socket.
func (r *rig) socketBehind(path string) string {
	r.t.Helper()
	target, err := url.Parse(r.url(""))
	ok(r.t, err)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(r.cfg.Data, AdminSocket))
	}
	socket := &httputil.ReverseProxy{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Rewrite: func(pr *httputil.ProxyRequest) {
		pr.Out.URL.Scheme, pr.Out.URL.Host = "http", "admin"
	}}
	mux := http.NewServeMux()
	mux.Handle(r.cfg.Path, httputil.NewSingleHostReverseProxy(target))
	mux.Handle(path+"/", http.StripPrefix(path, socket))
	s := httptest.NewServer(mux)
	r.t.Cleanup(s.Close)
	return s.URL
}

// forward is a plain TCP forward to the server.
func (r *rig) forward() string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(r.t, err)
	var work sync.WaitGroup
	r.t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				up, err := net.Dial("tcp", r.server.Addr().String())
				if err != nil {
					return
				}
				defer up.Close()
				var both sync.WaitGroup
				both.Go(func() { _, _ = io.Copy(up, c); _ = up.(*net.TCPConn).CloseWrite() })
				both.Go(func() { _, _ = io.Copy(c, up); _ = c.(*net.TCPConn).CloseWrite() })
				both.Wait()
			})
		}
	})
	return "http://" + l.Addr().String()
}

// What is in between and says nothing of who asks is found: a proxy that keeps Host or sets the
// server's own, and a TCP forward. Nothing is open because of it.
func TestDoctorFindsWhatHidesTheClient(t *testing.T) {
	for _, environ := range [][]string{nil, {"MOBILE_ADMIN_TOKEN=" + adminSecret}} {
		r := start(t, append(environ, "MOBILE_TOKEN="+mainToken)...)
		bare := func(host string) string {
			return r.proxy(func(out *http.Request) {
				out.Host = cmp.Or(host, out.Header.Get("X-Forwarded-Host"))
				for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
					out.Header.Del(name)
				}
			})
		}
		for name, address := range map[string]string{
			"as nginx' example":  bare(r.server.Addr().String()),
			"keeps the Host":     bare(""),
			"another local name": bare("localhost"),
			"a TCP forward":      r.forward(),
		} {
			p, list := r.tries(address, slow)
			if p.Result != doctor.PublicGood {
				t.Errorf("%s: %+v", name, p)
			}
			f := mustFind(t, list, "proxy_hides_client", "X-Forwarded-For", "option forwardfor", "MOBILE_TLS")
			if f.Severity != doctor.Warning {
				t.Errorf("%s: it is a %s", name, f.Severity)
			}
			mustNotFind(t, list, opened[:3]...)
		}
		_, list := r.tries(r.proxy(func(out *http.Request) {
			out.Header.Del("Upgrade")
			out.Header.Del("Connection")
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				out.Header.Del(name)
			}
		}), slow)
		mustFind(t, list, "proxy_drops_upgrades", "Host", "X-Forwarded-For")
		mustFind(t, list, "proxy_hides_client")
		for name, address := range map[string]string{"nothing in between": r.url(""), "by name": strings.Replace(r.url(""), "127.0.0.1", "localhost", 1), "a proxy that says it": r.proxy(nil)} {
			if _, list := r.tries(address, slow); len(list) > 0 {
				t.Errorf("%s: %q", name, codesOf(list))
			}
		}
	}
}
