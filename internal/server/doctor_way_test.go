package server

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/doctor"
)

// quick is the patience with what never comes, some that with what comes after something that must,
// slow that with what must.
const (
	quick = 300 * time.Millisecond
	some  = 6 * time.Second
	slow  = 20 * time.Second
)

// tries goes to the server by an address, as the doctor does, and returns what it finds.
func (r *rig) tries(public string, wait time.Duration) (*doctor.Public, []doctor.Issue) {
	r.t.Helper()
	var p doctor.Probe
	ok(r.t, r.admin.Post(r.t.Context(), "/doctor/probe", Command{}, &p))
	f := &doctor.Facts{Now: time.Now(), Config: r.cfg}
	f.Public = doctor.Prober{Timeout: wait}.Run(r.t.Context(), public, r.cfg.Path, p)
	return f.Public, doctor.CheckPublic(f)
}

// proxy stands in front of the server and changes requests.
func (r *rig) proxy(change func(*http.Request)) string {
	r.t.Helper()
	target, err := url.Parse(r.url(""))
	ok(r.t, err)
	p := &httputil.ReverseProxy{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(target)
		pr.SetXForwarded()
		if change != nil {
			change(pr.Out)
		}
	}}
	s := httptest.NewServer(p)
	r.t.Cleanup(s.Close)
	return s.URL
}

// site is a web server that is not ours.
func site(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestDoctorWayIn(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	for name, address := range map[string]string{"without a proxy": r.url(""), "with a slash": r.url("") + "/", "with a proxy": r.proxy(nil)} {
		if p, list := r.tries(address, slow); p.Result != doctor.PublicGood || len(list) != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	// TLS with a certificate of its own is no matter here.
	target, err := url.Parse(r.url(""))
	ok(t, err)
	secure := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(secure.Close)
	if p, _ := r.tries(secure.URL, slow); p.Result != doctor.PublicGood {
		t.Errorf("with TLS: %+v", p)
	}
}

func TestDoctorProxyDropsUpgrades(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	_, list := r.tries(r.proxy(func(out *http.Request) {
		out.Header.Del("Upgrade")
		out.Header.Del("Connection")
	}), slow)
	mustFind(t, list, "proxy_drops_upgrades", "Upgrade", "nginx")
	mustNotFind(t, list, "proxy_other_server", "proxy_buffers")
}

// holding is a proxy that passes the answer to an upgrade on, and after it holds one direction back
// for as long as the connection lives.
func (r *rig) holding(back, all bool) string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(r.t, err)
	var work sync.WaitGroup
	stop := make(chan struct{})
	r.t.Cleanup(func() { close(stop); _ = l.Close(); work.Wait() })
	serve := func(c net.Conn) {
		defer c.Close()
		up, err := net.Dial("tcp", r.server.Addr().String())
		if err != nil {
			return
		}
		defer up.Close()
		answer, request := bufio.NewReader(up), bufio.NewReader(c)
		var both sync.WaitGroup
		both.Go(func() {
			req, err := http.ReadRequest(request)
			if err != nil {
				return
			}
			plain := req.Header.Get("Upgrade") == ""
			if plain {
				req.Header.Set("Connection", "close")
			}
			_ = req.Write(up)
			if !back && !plain {
				<-stop
				return
			}
			_, _ = io.Copy(up, request)
		})
		both.Go(func() {
			resp, err := http.ReadResponse(answer, nil)
			if err != nil {
				return
			}
			if all && resp.StatusCode == http.StatusSwitchingProtocols {
				<-stop
				return
			}
			if resp.StatusCode == http.StatusSwitchingProtocols {
				resp.Body = http.NoBody
			}
			_ = resp.Write(c)
			if back && resp.StatusCode == http.StatusSwitchingProtocols {
				<-stop
				return
			}
			_, _ = io.Copy(c, answer)
			_ = c.Close()
		})
		ended := make(chan struct{})
		go func() { defer close(ended); both.Wait() }()
		select {
		case <-stop:
			_, _ = c.Close(), up.Close()
		case <-ended:
		}
		<-ended
	}
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { serve(c) })
		}
	})
	return "http://" + l.Addr().String()
}

func TestDoctorProxyBuffers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ back, all bool }{
		"what the server says":     {true, false},
		"what the phone says":      {false, false},
		"the answer to an upgrade": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, "MOBILE_TOKEN="+mainToken)
			_, list := r.tries(r.holding(tc.back, tc.all), some)
			mustFind(t, list, "proxy_buffers", "buffering")
		})
	}
}

func TestDoctorAnotherServerAnswers(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	other := start(t, "MOBILE_TOKEN="+mainToken)
	for name, address := range map[string]string{
		"one like it":  other.url(""),
		"a web page":   site(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }),
		"not found":    site(t, http.NotFound),
		"another path": r.url("/sub"),
		"only by https": site(t, func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "https://"+q.Host+q.URL.Path, http.StatusMovedPermanently)
		}),
	} {
		_, list := r.tries(address, slow)
		f := mustFind(t, list, "proxy_other_server", address, "MOBILE_PUBLIC_URL")
		if name == "only by https" && !strings.Contains(f.Text, "set MOBILE_PUBLIC_URL to https://") {
			t.Error(f.Text)
		}
	}
	// What the server has not announced it does not answer, so nobody can find out by probes who it
	// is; and a probe counts once.
	if status, body := r.get("/ws?probe=guessed"); status != http.StatusNotFound || strings.Contains(body, "hello") {
		t.Errorf("%d %s", status, body)
	}
	var p doctor.Probe
	ok(t, r.admin.Post(t.Context(), "/doctor/probe", Command{}, &p))
	for _, want := range []int{http.StatusUpgradeRequired, http.StatusNotFound} {
		if status, _ := r.get("/ws?probe=" + p.Nonce); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
}

func TestDoctorLoginInFront(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	for _, h := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) },
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "https://login.example.com/start", http.StatusFound)
		},
	} {
		_, list := r.tries(site(t, h), slow)
		mustFind(t, list, "proxy_login", "the server answers ")
	}
}

func TestDoctorPublicAddressUnreachable(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	closed := "http://" + l.Addr().String()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	ok(t, err)
	defer silent.Close()
	ok(t, l.Close())
	for address, wait := range map[string]time.Duration{
		closed: slow, "http://" + silent.Addr().String(): quick,
		site(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nobody there", http.StatusBadGateway) }): slow,
	} {
		_, list := r.tries(address, wait)
		mustFind(t, list, "public_unreachable", address)
	}
}
