package push

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/push"
	"hermes-mobile/internal/push/pushtest"
	"hermes-mobile/test/e2e"
)

func TestMain(m *testing.M) {
	code := m.Run()
	e2e.Tidy()
	os.Exit(code)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened is a notification as Node reads it.
type opened struct {
	Plain  string
	Signed bool
	Key    string
	Header struct{ Alg, Typ string }
	Claims struct {
		Aud, Sub string
		Exp      int64
	}
}

// open opens a notification with Node.
func open(t *testing.T, dir string, n pushtest.Notification, sub *pushtest.Subscription) (o opened) {
	t.Helper()
	in, err := json.Marshal(map[string]string{"body": base64.StdEncoding.EncodeToString(n.Raw), "privateKey": sub.Private, "auth": sub.Auth,
		"authorization": n.Header.Get("Authorization")})
	ok(t, err)
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "open.mjs"))
	var failed bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("Node cannot open the notification: %v\n%s", err, failed.String())
	}
	ok(t, json.Unmarshal(out, &o))
	return o
}

// What the built server sends to a browser is what the standards say, and says no more than the device asked for.
func TestNotificationIsOpenedByOthers(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("Node with npm is not installed: only this project's own implementation has opened notifications")
	}
	install := exec.CommandContext(t.Context(), "bash", "install.sh")
	install.Stderr = os.Stderr
	out, err := install.Output()
	ok(t, err)
	dir := strings.TrimSpace(string(out))

	service := pushtest.New()
	t.Cleanup(service.Close)
	s := e2e.NewServer(t, "MOBILE_PUSH=on", "MOBILE_PUSH_CONTACT=mailto:owner@example.com", "MOBILE_PUSH_HOSTS="+pushtest.Host)
	s.Agent = "demo"
	s.Start()
	shy, frank := service.Subscribe(), service.Subscribe()
	phone := e2e.NewPhone(t, s, "tel-1")
	var key struct{ Key string }
	answer, err := phone.Call(t.Context(), "push.key", nil)
	ok(t, err)
	ok(t, json.Unmarshal(answer, &key))
	for sub, content := range map[*pushtest.Subscription]bool{shy: false, frank: true} {
		_, err := phone.Call(t.Context(), "push.register", push.Target{Kind: push.WebPush, Endpoint: sub.Endpoint, Keys: &push.Secret{P256dh: sub.P256dh, Auth: sub.Auth}, Content: content})
		ok(t, err)
	}
	phone.Leave()
	words := "Grüße 👋 — the backup is done."
	if text, err := s.CLI(t.Context(), "deliver", "--to", "tel-1", "--text", words); err != nil {
		t.Fatalf("deliver: %v\n%s", err, text)
	}
	endpoint, err := url.Parse(shy.Endpoint)
	ok(t, err)
	for range 2 {
		var n pushtest.Notification
		select {
		case n = <-service.Got:
		case <-time.After(90 * time.Second):
			t.Fatalf("no notification came\n%s", s.LogTail(20))
		}
		sub, wantBody := shy, ""
		if strings.HasSuffix(frank.Endpoint, n.Path) {
			sub, wantBody = frank, words
		}
		o := open(t, dir, n, sub)
		var body struct {
			Type, Title, Body string
			IDs               []string
			Count             int
		}
		ok(t, json.Unmarshal([]byte(o.Plain), &body))
		if body.Type != "message" || body.Count != 1 || len(body.IDs) != 1 || body.Body != wantBody || (body.Title == "") != (wantBody == "") {
			t.Errorf("%s", o.Plain)
		}
		if life := time.Until(time.Unix(o.Claims.Exp, 0)); !o.Signed || o.Key != key.Key || o.Header.Alg != "ES256" || o.Claims.Aud != "http://"+endpoint.Host ||
			o.Claims.Sub != "mailto:owner@example.com" || life <= 0 || life > 24*time.Hour {
			t.Errorf("signed %v by %s: %+v %+v", o.Signed, o.Key, o.Header, o.Claims)
		}
		for _, secret := range []string{"backup", "Grüße", "tel-1", "message"} {
			if bytes.Contains(n.Raw, []byte(secret)) {
				t.Errorf("the service can read %q", secret)
			}
		}
	}
	if log := s.LogTail(1000); strings.Contains(log, endpoint.Path) || strings.Contains(log, "backup is done") {
		t.Error("the log holds an endpoint or what was said")
	}
}
