package server

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/cert"
)

// encrypted makes the rig's client use TLS and trust only the server's own CA.
func (r *rig) encrypted() *http.Client {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.cfg.Data, cert.Folder, "ca.pem"))
	ok(r.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
}

// overTLS connects a device by wss, offering HTTP/2 as browsers do.
func (r *rig) overTLS(id string) *device {
	r.t.Helper()
	ws, _, err := websocket.Dial(r.t.Context(), "wss://"+r.server.Addr().String()+r.cfg.Path, &websocket.DialOptions{HTTPClient: r.encrypted()})
	ok(r.t, err)
	ws.SetReadLimit(32 << 20)
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	d := &device{t: r.t, ws: ws}
	d.send(&frame.Hello{Token: mainToken, Device: frame.Device{ID: id}})
	d.ready = find[*frame.Ready](d)
	return d
}

// Every output of the address has the right one.
func TestAddressesWithTLS(t *testing.T) {
	r := start(t, "MOBILE_TLS=self", "MOBILE_TOKEN="+mainToken, "MOBILE_PATH=/app/ws")
	addr := r.server.Addr().String()
	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	pin := st.TLS.Fingerprint
	if st.Address != "wss://"+addr+"/app/ws" || st.Local != "http://"+addr || st.TLS.Mode != cert.Self || len(pin) != 64 || st.TLS.NotAfter.IsZero() ||
		r.server.addresses.certificate().Leaf != st.TLS.Leaf {
		t.Errorf("status %+v", st)
	}
	var inv Invitation
	ok(t, r.admin.Post(t.Context(), "/pair", Command{}, &inv))
	if want := "https://" + addr + "/#pair=" + inv.Code + "&fingerprint=" + pin + "&path=%2Fapp%2Fws"; inv.Link != want || inv.Address != st.Address || inv.Fingerprint != pin {
		t.Errorf("invitation %+v, want the link %s", inv, want)
	}
	var b strings.Builder
	r.server.Banner(&b, "hermes-mobile", false)
	for _, want := range []string{"listening  wss://" + addr + "/app/ws\n", "fingerprint " + pin} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the banner lacks %q:\n%s", want, b.String())
		}
	}
}

func TestAddressesWithoutTLS(t *testing.T) {
	r := start(t)
	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	if st.TLS.Mode != cert.Off || st.Local != "http://"+r.server.Addr().String() || r.server.addresses.certificate().Mode != cert.Off {
		t.Errorf("status %+v", st)
	}
	var inv Invitation
	ok(t, r.admin.Post(t.Context(), "/pair", Command{}, &inv))
	if inv.Fingerprint != "" || strings.Contains(inv.Link, "fingerprint") {
		t.Errorf("invitation %+v", inv)
	}
}

// A gateway on this machine gets the address of plain HTTP.
func TestAddressForThisMachine(t *testing.T) {
	for _, tt := range []struct {
		addr       string
		plain, tls string
	}{
		{"127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:1"},
		{"[::1]:1", "http://[::1]:1", "http://[::1]:1"},
		{"0.0.0.0:1", "http://127.0.0.1:1", "http://127.0.0.1:1"},
		{"[::]:1", "http://127.0.0.1:1", "http://127.0.0.1:1"},
		{"192.0.2.7:1", "http://192.0.2.7:1", ""},
	} {
		for want, certs := range map[*string]*cert.Certificates{&tt.plain: nil, &tt.tls: {}} {
			a := &addresses{listener: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.addr)), certs: certs}
			if got := a.local(); got != *want {
				t.Errorf("%s, with TLS: %v: %q, want %q", tt.addr, certs != nil, got, *want)
			}
		}
	}
}

// With a public address, the banner for a Hermes on this machine still has the local address: a
// proxy need not pass on the gateway's path, and Hermes doesn't know the server's own CA.
func TestBannerNamesTheLocalAddress(t *testing.T) {
	for _, mode := range []string{"off", "self"} {
		r := start(t, "MOBILE_AGENT=relay", "MOBILE_PUBLIC_URL=https://agent.example.com", "MOBILE_TLS="+mode)
		var b strings.Builder
		r.server.Banner(&b, "hermes-mobile", false)
		if want := `gateway: {relay_url: "http://` + r.server.Addr().String() + `"}`; !strings.Contains(b.String(), want) {
			t.Errorf("%s: the banner lacks %s:\n%s", mode, want, b.String())
		}
	}
}

// Phones use TLS, programs of this machine plain HTTP. A proxy on this machine counts the same as
// without TLS.
func TestBothKindsAreServed(t *testing.T) {
	r := start(t, "MOBILE_TLS=self", "MOBILE_TOKEN="+mainToken, "MOBILE_MAX_MEDIA_BYTES=1048576", "MOBILE_METRICS_TOKEN="+otherToken)
	addr := r.server.Addr().String()
	for i, d := range []*device{r.overTLS("tel-1"), r.connect("tel-2", mainToken), r.connect("tel-3", mainToken, "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: phone.example")} {
		d.send(&frame.Text{ID: "m1", Text: "/demo file 1048577"})
		m := find[*frame.Media](d)
		want := []string{"https://" + addr, "http://" + addr, "https://phone.example"}[i]
		if !strings.HasPrefix(m.URL, want+"/media/") {
			t.Errorf("link %q, want one that begins with %s", m.URL, want)
		}
		u, err := url.Parse(m.URL)
		ok(t, err)
		resp, err := r.encrypted().Get("https://" + addr + u.RequestURI())
		ok(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.ContentLength != 1048577 {
			t.Errorf("the link answers %s with %d bytes", resp.Status, resp.ContentLength)
		}
	}
	// Private data stays private over both.
	for _, tt := range []struct {
		base, header, value string
		want                int
	}{{"http://", "", "", 403}, {"https://", "", "", 403}, {"http://", "X-Forwarded-For", "127.0.0.1", 403}, {"https://", "X-Forwarded-For", "127.0.0.1", 403},
		{"http://", "Authorization", "Bearer " + otherToken, 200}, {"https://", "Authorization", "Bearer " + otherToken, 200}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.base+addr+"/metrics", nil)
		ok(t, err)
		if tt.header != "" {
			req.Header.Set(tt.header, tt.value)
		}
		resp, err := r.encrypted().Do(req)
		ok(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s with %q: %s, want %d", tt.base, tt.header, resp.Status, tt.want)
		}
	}
}

// A connected phone gets a close frame, and a silent one doesn't delay the stop.
func TestEndWithTLS(t *testing.T) {
	r := start(t, "MOBILE_TLS=self", "MOBILE_TOKEN="+mainToken)
	d := r.overTLS("tel-1")
	c, err := net.Dial("tcp", r.server.Addr().String())
	ok(t, err)
	defer c.Close()
	code := make(chan int, 1)
	go func() { code <- d.closed() }()
	ok(t, r.stop())
	if code := <-code; code != int(frame.CloseGoingAway) {
		t.Errorf("closed with %d", code)
	}
	if strings.Contains(r.log.String(), "level=WARN") {
		t.Errorf("the log warns:\n%s", r.log.String())
	}
}

// SIGHUP reloads the certificate for new connections. A broken one is reported and changes nothing.
func TestReloadOfTheCertificate(t *testing.T) {
	dir := folder(t)
	first, second := start(t, "MOBILE_TLS=self"), start(t, "MOBILE_TLS=self")
	certPath, keyPath := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	write := func(r *rig) {
		for from, to := range map[string]string{"server.pem": certPath, "server.key": keyPath} {
			b, err := os.ReadFile(filepath.Join(r.cfg.Data, cert.Folder, from))
			ok(t, err)
			ok(t, os.WriteFile(to, b, 0o600))
		}
	}
	write(first)
	r := startIn(t, dir, "MOBILE_TLS=files", "MOBILE_TLS_CERT="+certPath, "MOBILE_TLS_KEY="+keyPath)
	if got := r.server.addresses.certificate(); got.Leaf != first.server.addresses.certificate().Leaf || got.Fingerprint != "" {
		t.Fatalf("state %+v", got)
	}
	write(second)
	ok(t, r.server.Reload(r.cfg))
	want := second.server.addresses.certificate().Leaf
	if got := r.server.addresses.certificate(); got.Leaf != want {
		t.Errorf("state %+v", got)
	}
	ok(t, os.WriteFile(keyPath, []byte("x"), 0o600))
	if err := r.server.Reload(r.cfg); err == nil || !strings.Contains(err.Error(), "the old one stays in use") {
		t.Errorf("error %v", err)
	}
	if got := r.server.addresses.certificate(); got.Leaf != want || got.LastError == "" {
		t.Errorf("state %+v", got)
	}
	resp, err := second.encrypted().Get("https://" + r.server.Addr().String() + "/healthz")
	ok(t, err)
	_ = resp.Body.Close()
}

// A start with a wrong certificate leaves nothing behind: the same folder and port can be used at
// once.
func TestStartWithoutACertificate(t *testing.T) {
	dir := folder(t)
	cfg := settings(t, dir, "MOBILE_TLS=files", "MOBILE_TLS_CERT="+filepath.Join(dir, "c.pem"), "MOBILE_TLS_KEY="+filepath.Join(dir, "k.pem"))
	if _, err := New(t.Context(), cfg, "1", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "MOBILE_TLS_CERT") {
		t.Fatalf("error %v", err)
	}
	startIn(t, dir, "MOBILE_TLS=self")
}

// With a certificate that every browser trusts, the server tells browsers to use https only.
func TestStrictTransportSecurity(t *testing.T) {
	for mode, want := range map[string]string{"auto": "max-age=31536000", "self": "", "off": ""} {
		r := start(t, "MOBILE_TLS="+mode, "MOBILE_TOKEN="+mainToken, "MOBILE_PUBLIC_URL=https://agent.example", "MOBILE_TLS_ACME=https://127.0.0.1:1/directory")
		h := encrypted(r.server.addresses.certs, r.server.cfg.TLS, r.server.handler())
		for _, path := range []string{"/", "/healthz", "/admin", "/ws", "/nothing"} {
			for _, encrypted := range []bool{true, false} {
				q := httptest.NewRequest(http.MethodGet, "https://agent.example"+path, nil)
				q.RemoteAddr = "127.0.0.1:5"
				if !encrypted {
					q.TLS = nil // a browser does not take it from plain HTTP
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, q)
				got := w.Result().Header.Get("Strict-Transport-Security")
				if expect := map[bool]string{true: want}[encrypted]; got != expect {
					t.Errorf("%s, %s, encrypted %t: %q", mode, path, encrypted, got)
				}
			}
		}
	}
}
