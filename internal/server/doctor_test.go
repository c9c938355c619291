package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/store"
)

const gatewaySecret = "3333333333333333333333333333333333333333333333333333333333333333"

// examined returns the issues for the doctor, without those caused by others.
func (r *rig) examined() []doctor.Issue {
	r.t.Helper()
	var d Diagnosis
	ok(r.t, r.admin.Get(r.t.Context(), "/doctor", &d))
	return doctor.Shorten(d.Issues)
}

func codesOf(list []doctor.Issue) (out []string) {
	for _, f := range list {
		out = append(out, f.Code)
	}
	return out
}

// mustFind returns an issue that must exist with certain words.
func mustFind(t testing.TB, list []doctor.Issue, code string, says ...string) doctor.Issue {
	t.Helper()
	i := slices.IndexFunc(list, func(f doctor.Issue) bool { return f.Code == code })
	if i < 0 {
		t.Fatalf("no %s in %q", code, codesOf(list))
	}
	f := list[i]
	if f.Severity == "" || f.Text == "" || f.Do == "" || f.See == "" || strings.Contains(f.Text+f.Do, "%!") || !strings.HasSuffix(f.Text, ".") {
		t.Errorf("%+v", f)
	}
	for _, s := range says {
		if !strings.Contains(f.Text+"\n"+f.Do, s) {
			t.Errorf("%s does not say %q: %s\n%s", code, s, f.Text, f.Do)
		}
	}
	return f
}

func mustNotFind(t testing.TB, list []doctor.Issue, codes ...string) {
	t.Helper()
	for _, f := range list {
		if slices.Contains(codes, f.Code) {
			t.Errorf("%s: %s", f.Code, f.Text)
		}
	}
}

// readyz returns the owner's /readyz over the admin socket, with its status, when it has an issue.
func (r *rig) readyz(code string) (status int, h Health) {
	r.t.Helper()
	until(r.t, code+" in /readyz", func() bool {
		resp, err := r.admin.http.Get("http://admin/readyz")
		ok(r.t, err)
		defer resp.Body.Close()
		h, status = Health{}, resp.StatusCode
		ok(r.t, json.NewDecoder(resp.Body).Decode(&h))
		return code == "" || slices.Contains(codesOf(h.Issues), code)
	})
	return status, h
}

// startRelay starts a server that waits for the gateway gw-home.
func startRelay(t *testing.T, environ ...string) *rig {
	t.Helper()
	return start(t, append([]string{"MOBILE_TOKEN=" + mainToken, "MOBILE_AGENT=relay", "MOBILE_RELAY_ID=gw-home", "MOBILE_RELAY_SECRET=" + gatewaySecret}, environ...)...)
}

// home creates a Hermes home that is set up for the server, with a gateway that seems to run: this
// process.
func (r *rig) home() string {
	r.t.Helper()
	ok(r.t, os.MkdirAll(r.cfg.HermesHome, 0o700))
	url := "http://" + r.server.Addr().String()
	for name, text := range map[string]string{
		"config.yaml": fmt.Sprintf("model: some-model\ngateway: {relay_url: %q}\nplatforms: {relay: {enabled: true, extra: {relay_url: %q}}}\ndisplay: {busy_ack_enabled: false, busy_input_mode: queue}\n", url, url),
		".env":        "GATEWAY_RELAY_ID=gw-home\nGATEWAY_RELAY_SECRET=" + gatewaySecret + "\n",
		"gateway.pid": strconv.Itoa(os.Getpid()),
	} {
		ok(r.t, os.WriteFile(filepath.Join(r.cfg.HermesHome, name), []byte(text), 0o600))
	}
	return r.cfg.HermesHome
}

// bearer returns the token of a gateway whose clock is off (doc/hermes/relay.md §3).
func bearerOf(id, secret string, off time.Duration) string {
	signed := fmt.Sprintf("%s:%d", id, time.Now().Add(off+300*time.Second).Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(signed+":"+hex.EncodeToString(mac.Sum(nil))))
}

// dials connects as a gateway. It returns nil if the server rejects it.
func (r *rig) dials(authorization string) *websocket.Conn {
	r.t.Helper()
	h := http.Header{}
	if authorization != "" {
		h.Set("Authorization", authorization)
	}
	ws, resp, err := websocket.Dial(r.t.Context(), r.url("/relay"), &websocket.DialOptions{HTTPClient: r.http, HTTPHeader: h})
	if resp != nil && resp.StatusCode == http.StatusUnauthorized {
		return nil
	}
	ok(r.t, err)
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// joins connects a gateway that is accepted and says hello.
func (r *rig) joins() *websocket.Conn {
	r.t.Helper()
	ws := r.dials(bearerOf("gw-home", gatewaySecret, 0))
	if ws == nil {
		r.t.Fatal("the gateway is refused")
	}
	ok(r.t, ws.Write(r.t.Context(), websocket.MessageText, []byte(`{"type":"hello","platform":"relay","botId":""}`+"\n")))
	_, _, err := ws.Read(r.t.Context())
	ok(r.t, err)
	return ws
}

// The status, /readyz, and the doctor show the same issues. Strangers see only codes.
func TestIssuesAreTheSameEverywhere(t *testing.T) {
	r := startRelay(t)
	found := mustFind(t, r.examined(), "hermes_missing", r.cfg.HermesHome)
	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	if f := mustFind(t, st.Health.Issues, "hermes_missing"); f.Text != found.Text || f.Do != found.Do {
		t.Errorf("the status says %+v, the doctor %+v", f, found)
	}
	status, h := r.readyz("hermes_missing")
	if f := mustFind(t, h.Issues, "hermes_missing"); f.Text != found.Text || status != http.StatusOK || !h.Ready {
		t.Errorf("readyz %d says %+v", status, h)
	}
	for _, header := range []string{"Accept: */*", "X-Forwarded-For: 203.0.113.9"} {
		_, body := r.get("/readyz", header)
		if !strings.Contains(body, `{"code":"hermes_missing","severity":"error"}`) || strings.Contains(body, r.cfg.HermesHome) {
			t.Errorf("strangers are told %s", body)
		}
	}
}

// /readyz answers at once, whatever a snapshot waits for.
func TestReadyzDoesNotWait(t *testing.T) {
	release := make(chan struct{})
	taken := make(chan struct{}, 10)
	l := newSnapshots(func(ctx context.Context) *snapshot {
		taken <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return &snapshot{at: time.Now()}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.run(ctx) }()
	if l.last() != nil {
		t.Error("there is a snapshot already")
	}
	<-taken // one is being taken, and nobody waits
	for range 5 {
		if l.last() != nil {
			t.Error("a snapshot came from nothing")
		}
	}
	if l.fresh(t.Context(), 0, time.Millisecond) != nil {
		t.Error("the timeout was exceeded")
	}
	close(release)
	first := l.fresh(t.Context(), time.Hour, patience)
	if first == nil {
		t.Fatal("the snapshot did not come")
	}
	if l.last() != first || l.fresh(t.Context(), time.Hour, patience) != first {
		t.Error("a fresh snapshot was taken again")
	}
	if again := l.fresh(t.Context(), 0, patience); again == first || again == nil {
		t.Error("the doctor got an old snapshot")
	}
	cancel()
	<-done
	if l.fresh(t.Context(), 0, patience) == nil || l.last() == nil {
		t.Error("after the end the newest snapshot counts")
	}
}

func TestDoctorStore(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_AGENT=demo")
	if list := r.examined(); len(list) != 0 {
		t.Errorf("a healthy server has %q", codesOf(list))
	}
	d := r.connect("tel-1", mainToken)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.cfg.Data, store.File)+"?_pragma=busy_timeout(10000)")
	ok(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "CREATE TRIGGER test_full BEFORE INSERT ON inbox BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	ok(t, err)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	find[*frame.Error](d)
	mustFind(t, r.examined(), "store_failed", r.cfg.Data, "free")
	if status, h := r.readyz("store_failed"); status != http.StatusServiceUnavailable || h.Ready {
		t.Errorf("readyz %d", status)
	}
}

func TestDoctorPairing(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	ok(t, os.WriteFile(filepath.Join(r.cfg.Data, "pairing", "mobile-approved.json"), []byte("{not JSON"), 0o600))
	mustFind(t, r.examined(), "pairing_unreadable", "mobile-approved.json")
	if status, _ := r.readyz("pairing_unreadable"); status != http.StatusOK {
		t.Errorf("readyz %d", status)
	}
	if err := CheckPairing(r.cfg); err == nil {
		t.Error("without a server it is not seen")
	}
	if err := CheckPairing(settings(t, t.TempDir())); err != nil {
		t.Errorf("where there is none yet: %v", err)
	}
}

func TestDoctorGatewayRefused(t *testing.T) {
	for name, tc := range map[string]struct{ authorization, code string }{
		"id":     {bearerOf("gw-other", gatewaySecret, 0), "gateway_unknown_id"},
		"secret": {bearerOf("gw-home", "some-other-secret-of-a-gateway", 0), "gateway_wrong_secret"},
		"none":   {"", "gateway_no_secret"},
		"odd":    {"Bearer x", "gateway_no_secret"},
		"behind": {bearerOf("gw-home", gatewaySecret, -900*time.Second), "clock_skew"},
		"ahead":  {bearerOf("gw-home", gatewaySecret, 1000*time.Second), "clock_skew"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRelay(t)
			r.home()
			mustFind(t, r.examined(), "gateway_not_dialled", "gw-home", "hermes gateway restart")
			if r.dials(tc.authorization) != nil {
				t.Fatal("it was let in")
			}
			list := r.examined()
			switch tc.code {
			case "gateway_unknown_id":
				mustFind(t, list, "gateway_unknown_id", "127.0.0.1", "It knows gw-home")
			case "gateway_wrong_secret":
				mustFind(t, list, "gateway_wrong_secret", "gw-home", "its secret is wrong")
			case "gateway_no_secret":
				mustFind(t, list, "gateway_no_secret", "Authorization")
			case "clock_skew":
				f := mustFind(t, list, "clock_skew", "gw-home", "timedatectl")
				m := regexp.MustCompile(`its clock is (\d+) seconds (behind|ahead of) this machine's`).FindStringSubmatch(f.Text)
				if m == nil || m[2] != map[string]string{"behind": "behind", "ahead": "ahead of"}[name] {
					t.Fatal(f.Text)
				}
				if n, _ := strconv.Atoi(m[1]); n < 890 || n > 1010 {
					t.Errorf("the difference is %d seconds", n)
				}
			}
			// That the gateway hasn't connected is a consequence.
			mustNotFind(t, list, "gateway_not_dialled", "agent_away", "hermes_missing")
			if status, h := r.readyz(tc.code); status != http.StatusOK || !h.Ready {
				t.Errorf("readyz %d: messages are taken and wait", status)
			}

			// After its settings were written again, they aren't the cause any more, and it must be
			// restarted.
			if tc.code != "clock_skew" {
				later := time.Now().Add(2 * time.Second)
				ok(t, os.Chtimes(filepath.Join(r.cfg.HermesHome, ".env"), later, later))
				list := r.examined()
				mustNotFind(t, list, tc.code)
				mustFind(t, list, "gateway_not_dialled", "its settings changed")
			}

			// Once it is accepted, the rejections are forgotten.
			r.joins()
			if list := r.examined(); len(list) != 0 {
				t.Errorf("all is well, and there is %q", codesOf(list))
			}
		})
	}
}

func TestDoctorGatewayComesAndGoes(t *testing.T) {
	r := startRelay(t)
	list := r.examined()
	mustFind(t, list, "hermes_missing")
	mustNotFind(t, list, "agent_away", "gateway_not_dialled")
	home := r.home()
	mustFind(t, r.examined(), "gateway_not_dialled", "pauses of up to 5 minutes", "by about")

	// The gateway was started before its settings were written.
	started := time.Now().Add(-time.Hour)
	ok(t, os.Chtimes(filepath.Join(home, "gateway.pid"), started, started))
	mustFind(t, r.examined(), "gateway_not_dialled", "its settings changed at", "hermes gateway restart")

	ws := r.joins()
	if list := r.examined(); len(list) != 0 {
		t.Errorf("all is well, and there is %q", codesOf(list))
	}
	_ = ws.CloseNow()
	until(t, "the gateway's end", func() bool { return !r.server.agent.Status("").Online })
	mustFind(t, r.examined(), "agent_away", "gw-home is offline since", "queues messages")

	ok(t, os.Remove(filepath.Join(home, "gateway.pid")))
	list = r.examined()
	mustFind(t, list, "gateway_not_running", home)
	mustNotFind(t, list, "agent_away")

	// If it has connected before, a missing home means nothing: it runs elsewhere.
	ok(t, os.RemoveAll(home))
	list = r.examined()
	mustFind(t, list, "agent_away")
	mustNotFind(t, list, "hermes_missing")
}

func TestDoctorGatewayLongOverdue(t *testing.T) {
	r := startRelay(t)
	home := r.home()
	r.server.health.started = time.Now().Add(-20 * time.Minute)
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"gateway.pid", "config.yaml", ".env"} {
		ok(t, os.Chtimes(filepath.Join(home, name), past, past))
	}
	mustFind(t, r.examined(), "gateway_not_dialled", "for 20 minutes", "longer than its longest pause", "logs/gateway.log")
}

// Two gateways with one id disconnect each other.
func TestDoctorSameID(t *testing.T) {
	r := startRelay(t)
	r.home()
	for range 4 {
		r.joins()
	}
	mustFind(t, r.examined(), "same_gateway_id", "gw-home")
}

// A gateway that doesn't acknowledge events.
func TestDoctorWedge(t *testing.T) {
	r := startRelay(t)
	r.home()
	r.joins()
	d := r.connect("tel-1", mainToken)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	until(t, "the wedge", func() bool { return slices.Contains(codesOf(r.examined()), "gateway_wedged") })
	mustFind(t, r.examined(), "gateway_wedged", "gw-home", "1 time so far")

	// With the usual cause, only that is reported.
	config := filepath.Join(r.cfg.HermesHome, "config.yaml")
	text, err := os.ReadFile(config)
	ok(t, err)
	ok(t, os.WriteFile(config, []byte(strings.Replace(string(text), "busy_ack_enabled: false", "busy_ack_enabled: true", 1)), 0o600))
	list := r.examined()
	mustFind(t, list, "busy_ack_on")
	mustNotFind(t, list, "gateway_wedged")
}

func TestDoctorDeviceRefused(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOWED_DEVICES=tel-1,tel-2")
	for i := range 3 {
		if i == 2 {
			mustNotFind(t, r.examined(), "device_refused") // twice is nothing
		}
		r.dial("tel-1", otherToken).closed()
		r.dial("tel-9", mainToken).closed()
		d := &device{t: t, ws: r.socket()}
		d.send(&frame.Hello{Pair: "ABCD-EFGH", Device: frame.Device{ID: "tel-2"}})
		d.closed()
	}
	list := r.examined()
	for id, why := range map[string]string{"tel-1": "token is wrong", "tel-9": "MOBILE_ALLOWED_DEVICES", "tel-2": "pairing code"} {
		i := slices.IndexFunc(list, func(f doctor.Issue) bool { return f.About == id })
		if i < 0 {
			t.Fatalf("nothing is said of %s: %q", id, codesOf(list))
		}
		f := mustFind(t, list[i:i+1], "device_refused", id, "127.0.0.1", "3 times", why)
		if strings.Contains(f.Text, otherToken) {
			t.Error("the token is shown")
		}
	}
	r.connect("tel-1", mainToken)
	for _, f := range r.examined() {
		if f.About == "tel-1" {
			t.Errorf("it was let in since: %+v", f)
		}
	}
}

func TestDoctorRequestRefused(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOWED_ORIGINS=https://app.example.com")
	for range 3 {
		r.get("/ws?token="+mainToken, "Connection: Upgrade")
		r.get("/ws", "Origin: https://evil.example.com")
	}
	list := r.examined()
	byCode := func(code string) []doctor.Issue {
		return slices.DeleteFunc(slices.Clone(list), func(f doctor.Issue) bool { return !strings.HasSuffix(f.About, code) })
	}
	f := mustFind(t, byCode("400"), "request_refused", "127.0.0.1", "token in the address", "hello")
	if strings.Contains(f.Text, mainToken) {
		t.Error("the token is shown")
	}
	mustFind(t, byCode("403"), "request_refused", "https://evil.example.com", "MOBILE_ALLOWED_ORIGINS")
	for range 10 {
		r.dial("tel-1", otherToken).closed()
	}
	for range 3 {
		if status, _ := r.get("/ws"); status != http.StatusTooManyRequests {
			t.Fatalf("a guesser gets %d", status)
		}
	}
	list = r.examined()
	mustFind(t, byCode("429"), "request_refused", "wrong tokens")
}

func TestDoctorOutboxAging(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_OUTBOX_DAYS=7")
	r.connect("tel-1", mainToken)
	r.connect("tel-2", mainToken)
	fill := func(id string, age time.Duration) {
		dev, err := r.server.store.Device(t.Context(), id)
		ok(t, err)
		ok(t, r.server.store.Do(func(tx *store.Tx) error {
			for seq := range int64(3) {
				if err := tx.Append(dev.N, seq+100, store.KindMessage, []byte("{}"), "", time.Now().Add(-age+time.Duration(seq)*24*time.Hour)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	fill("tel-1", 6*24*time.Hour-time.Hour)
	mustNotFind(t, r.examined(), "outbox_aging")
	fill("tel-2", 6*24*time.Hour+time.Hour)
	f := mustFind(t, r.examined(), "outbox_aging", "tel-2", "1 message waits", "7 days", "devices revoke tel-2")
	if f.About != "tel-2" {
		t.Errorf("%+v", f)
	}
}

func TestDoctorUntrustedProxy(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_TRUSTED_PROXIES=10.0.0.5")
	for i := range 3 {
		if i == 2 {
			mustNotFind(t, r.examined(), "proxy_untrusted")
		}
		r.get("/healthz", "X-Forwarded-For: 203.0.113.9")
	}
	mustFind(t, r.examined(), "proxy_untrusted", "127.0.0.1", "MOBILE_TRUSTED_PROXIES")
	trusting := start(t, "MOBILE_TOKEN="+mainToken)
	for range 3 {
		trusting.get("/healthz", "X-Forwarded-For: 203.0.113.9")
	}
	mustNotFind(t, trusting.examined(), "proxy_untrusted")
}
