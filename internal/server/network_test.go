package server

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// socket is a connection that has said nothing.
func (r *rig) socket() *websocket.Conn {
	r.t.Helper()
	ws, _, err := websocket.Dial(r.t.Context(), r.url(r.cfg.Path), &websocket.DialOptions{HTTPClient: r.http})
	ok(r.t, err)
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// Settings that are read again: new tokens hold at once, connections with those that are gone end,
// others stay; settings that are wrong change nothing.
func TestReload(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_DELIVER_TOKENS="+otherToken)
	d, sender := r.connect("tel-1", mainToken), r.connect("cron", otherToken)
	third := strings.Repeat("3", 64)
	ok(t, r.server.Reload(settings(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_EXTRA_TOKENS=new="+third)))
	if code := sender.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("the sender is closed with %d", code)
	}
	next := r.connect("tel-3", third)
	d.send(&frame.Ping{})
	find[*frame.Pong](d)

	bad := settings(t, dir)
	bad.Token, bad.ExtraTokens = mainToken, "x="+mainToken
	if err := r.server.Reload(bad); err == nil || strings.Contains(err.Error(), mainToken) {
		t.Errorf("a token that stands twice: %v", err)
	}
	next.send(&frame.Ping{})
	find[*frame.Pong](next)

	// The secret behind a label is changed: who came with the old one goes.
	ok(t, r.server.Reload(settings(t, dir, "MOBILE_TOKEN="+otherToken, "MOBILE_EXTRA_TOKENS=new="+third)))
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}
	r.connect("tel-1", otherToken) // the label is the same, and so is the binding
}

// A token that is bound to a device when the settings are read again is no other's any more, in
// either form.
func TestReloadBindsTokens(t *testing.T) {
	for form, more := range map[string][]string{"MOBILE_EXTRA_TOKENS=device:tel-1=": nil, "MOBILE_EXTRA_TOKENS=tel-1=": {"MOBILE_EXTRA_TOKENS_BIND=yes"}} {
		dir := folder(t)
		third := strings.Repeat("3", 64)
		r := startIn(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_EXTRA_TOKENS=tel-1="+third)
		own, other, free := r.connect("tel-1", third), r.connect("tel-2", third), r.connect("tel-3", mainToken)
		ok(t, r.server.Reload(settings(t, dir, append(more, "MOBILE_TOKEN="+mainToken, form+third)...)))
		if code := other.closed(); code != int(frame.CloseNoAccess) {
			t.Errorf("%s: another device is closed with %d", form, code)
		}
		for _, d := range []*device{own, free} {
			d.send(&frame.Ping{})
			find[*frame.Pong](d)
		}
	}
}

// Settings are read again while requests of every sort are being served.
func TestReloadUnderLoad(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir, "MOBILE_TOKEN="+mainToken)
	next := settings(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_EXTRA_TOKENS=x="+otherToken)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, f := range []func(){
		func() { _, _ = r.get("/metrics") },
		func() { _, _ = r.get("/readyz") },
		func() { _ = r.admin.Get(t.Context(), "/tokens", nil) },
		func() { _ = r.admin.Get(t.Context(), "/status", nil) },
		func() { _ = r.admin.Post(t.Context(), "/pair", Command{}, nil) },
		func() { _ = r.admin.Post(t.Context(), "/pairing/revoke", Command{ID: "x"}, nil) },
	} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	for range 20 {
		if err := r.server.Reload(next); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestHealth(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	if code, body := r.get("/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz %d %q", code, body)
	}
	if code, body := r.get("/readyz"); code != http.StatusOK || !strings.Contains(body, `"ready":true`) {
		t.Errorf("readyz %d %q", code, body)
	}
	if code, body := r.get("/"); code != http.StatusOK || !strings.Contains(body, r.cfg.Path) {
		t.Errorf("/ %d %q", code, body)
	}
	if code, _ := r.get("/nothing"); code != http.StatusNotFound {
		t.Errorf("an unknown page: %d", code)
	}

	// The store takes nothing more, as on a full disk.
	d := r.connect("tel-1", mainToken)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.cfg.Data, store.File)+"?_pragma=busy_timeout(10000)")
	ok(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "CREATE TRIGGER test_full BEFORE INSERT ON inbox BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	ok(t, err)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if e := find[*frame.Error](d); e.Code != frame.Internal || e.Ref != "m1" {
		t.Errorf("%+v", e)
	}
	if code, h := r.readyz("store_failed"); code != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(h), r.cfg.Data) {
		t.Errorf("readyz for the owner: %d %+v", code, h)
	}
	if code, body := r.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "store_failed") || strings.Contains(body, r.cfg.Data) {
		t.Errorf("readyz for a stranger: %d %q", code, body)
	}
	if code, _ := r.get("/healthz"); code != http.StatusOK {
		t.Errorf("healthz %d: a restart would not help", code)
	}
	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	if st.Health.Ready {
		t.Error("the status does not say so")
	}
	_, err = db.ExecContext(t.Context(), "DROP TRIGGER test_full")
	ok(t, err)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if a := find[*frame.Accepted](d); a.Duplicate {
		t.Errorf("%+v", a)
	}
}

func TestMetrics(t *testing.T) {
	const secret = "a-token-for-metrics-0123456789abcdef"
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_METRICS_TOKEN="+secret)
	r.connect("tel-secret-name", mainToken)
	code, body := r.get("/metrics", "Authorization: Bearer "+secret)
	if code != http.StatusOK || !strings.Contains(body, "hermes_mobile_device_connections 1") || !strings.Contains(body, `version="1.2.3"`) {
		t.Errorf("%d %.300q", code, body)
	}
	if strings.Contains(body, "tel-secret-name") {
		t.Error("a device id is a label")
	}
	if code, body := r.get("/metrics"); code != http.StatusForbidden || !strings.Contains(body, "MOBILE_METRICS_TOKEN") || !strings.Contains(body, "hermes-mobile status --metrics") {
		t.Errorf("without the token: %d %q", code, body)
	}
	if text, err := r.admin.Text(t.Context(), "/metrics"); err != nil || !strings.Contains(text, "hermes_mobile_device_connections 1") {
		t.Errorf("over the admin socket: %v %.300q", err, text)
	}
	r = start(t, "MOBILE_TOKEN="+mainToken)
	for _, auth := range []string{"Bearer ", "Bearer", "Bearer " + mainToken} {
		if code, _ := r.get("/metrics", "Authorization: "+auth); code != http.StatusForbidden {
			t.Errorf("%q, where no token is set: %d", auth, code)
		}
	}
}

// A link to a large file begins with the address by which the client reached the server, as a
// trusted proxy tells it.
func TestBaseOfLinks(t *testing.T) {
	for _, tc := range []struct {
		name    string
		environ []string
		headers []string
		want    string // the server's own address where empty
	}{
		{name: "direct"},
		{name: "trusted proxy", headers: []string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: phone.example"}, want: "https://phone.example"},
		{name: "only the scheme", headers: []string{"X-Forwarded-Proto: https"}, want: "https://"},
		{name: "a chain of proxies", headers: []string{"X-Forwarded-For: 192.0.2.1, 127.0.0.1", "X-Forwarded-Proto: http, https", "X-Forwarded-Host: evil.example, phone.example"}, want: "https://phone.example"},
		{name: "no host", headers: []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example/x"}, want: "https://"},
		{name: "odd scheme", headers: []string{"X-Forwarded-Proto: javascript"}},
		{name: "untrusted proxy", environ: []string{"MOBILE_TRUSTED_PROXIES=none"}, headers: []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example"}},
		{name: "public URL", environ: []string{"MOBILE_PUBLIC_URL=https://public.example"}, headers: []string{"X-Forwarded-Host: other.example"}, want: "https://public.example"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := start(t, append(tc.environ, "MOBILE_TOKEN="+mainToken, "MOBILE_MAX_MEDIA_BYTES=1048576")...)
			d := r.connect("tel-1", mainToken, tc.headers...)
			d.send(&frame.Text{ID: "m1", Text: "/demo file 1048577"})
			m := find[*frame.Media](d)
			want := tc.want
			switch want {
			case "":
				want = "http://" + r.server.Addr().String()
			case "https://":
				want += r.server.Addr().String()
			}
			if !strings.HasPrefix(m.URL, want+"/media/") || len(m.Data) != 0 || !m.Final {
				t.Fatalf("link %q, want one that begins with %s/media/", m.URL, want)
			}
			u, err := url.Parse(m.URL)
			ok(t, err)
			if code, body := r.get(u.RequestURI()); code != http.StatusOK || len(body) != 1048577 {
				t.Errorf("the link answers %d with %d bytes", code, len(body))
			}
			if code, _ := r.get(u.RequestURI() + "x"); code != http.StatusForbidden {
				t.Errorf("a changed link answers %d", code)
			}
		})
	}
}

// A proxy keeps quiet connections to use them again. If we closed one first, what it sends at that
// moment would fail.
func TestQuietConnectionsOutliveProxies(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	const caddy = 2 * time.Minute // the longest of those in doc/operate.md
	if got := newHTTPServer(nil, r.server.log).IdleTimeout; got <= caddy {
		t.Errorf("quiet connections are closed after %s, before the proxy forgets them", got)
	}
}

// What is turned away before it becomes a connection.
func TestUpgradeRefused(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOWED_ORIGINS=https://app.example")
	if code, body := r.get("/ws?token="+mainToken, "Connection: Upgrade", "Upgrade: websocket"); code != http.StatusBadRequest || !strings.Contains(body, "hello") {
		t.Errorf("a token in the address: %d %q", code, body)
	}
	if code, _ := r.get("/ws", "Origin: https://evil.example"); code != http.StatusForbidden {
		t.Errorf("a foreign page: %d", code)
	}
	r.connect("tel-1", mainToken, "Origin: https://app.example")
	for range 10 {
		_ = r.dial("guess", otherToken, "X-Forwarded-For: 192.0.2.66").closed()
	}
	if code, body := r.get("/ws", "X-Forwarded-For: 192.0.2.66"); code != http.StatusTooManyRequests {
		t.Errorf("after ten wrong tokens: %d %q", code, body)
	}
	r.connect("tel-1", mainToken, "X-Forwarded-For: 192.0.2.67") // others are not locked out
}
