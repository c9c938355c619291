package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/push/pushtest"
)

// Without a contact there are no notifications, and the owner learns why.
func TestPushNeedsAContact(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_PUSH=on")
	mustFind(t, r.examined(), "push_off", "MOBILE_PUSH_CONTACT", "MOBILE_PUBLIC_URL")
	if status, h := r.readyz("push_off"); status != http.StatusOK || !h.Ready {
		t.Errorf("readyz %d", status)
	}
	if !strings.Contains(r.log.String(), "MOBILE_PUSH_CONTACT") {
		t.Error("the log does not say why")
	}
	if d := r.connect("d", mainToken); d.ready.Capabilities.Push {
		t.Error("notifications are offered")
	}
	r = start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_PUSH_CONTACT=mailto:me@example.com")
	for _, f := range r.examined() {
		if f.Code == "push_off" {
			t.Errorf("%+v", f)
		}
	}
	if d := r.connect("d", mainToken); !d.ready.Capabilities.Push {
		t.Error("notifications are not offered")
	}
}

// The key pair is made once. One that is damaged costs the notifications and nothing else.
func TestPushKeyPair(t *testing.T) {
	dir := folder(t)
	env := []string{"MOBILE_TOKEN=" + mainToken, "MOBILE_PUSH_CONTACT=mailto:me@example.com"}
	key := func(r *rig) string {
		t.Helper()
		d := r.connect("d", mainToken)
		d.send(&frame.Call{ID: "k", Method: "push.key", Params: []byte("{}")})
		var answer struct{ Key string }
		ok(t, json.Unmarshal(find[*frame.Result](d).Result, &answer))
		return answer.Key
	}
	r := startIn(t, dir, env...)
	first := key(r)
	ok(t, r.stop())
	r = startIn(t, dir, env...)
	if again := key(r); again != first || len(first) != 87 {
		t.Errorf("the key is %q, was %q", again, first)
	}
	ok(t, r.stop())
	path := filepath.Join(r.cfg.Data, push.KeysFile)
	ok(t, os.WriteFile(path, []byte("{}"), 0o600))
	r = startIn(t, dir, env...)
	mustFind(t, r.examined(), "push_off", path)
	if d := r.connect("d", mainToken); d.ready.Capabilities.Push {
		t.Error("notifications are offered without a key")
	}
}

// press answers a question by the button of a notification.
func (r *rig) press(body string, headers ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url("/push/action"), strings.NewReader(body))
	ok(r.t, err)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		if name, v, is := strings.Cut(h, ": "); is {
			req.Header.Set(name, v)
		}
	}
	resp, err := r.http.Do(req)
	ok(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(r.t, err)
	return resp.StatusCode, strings.TrimSpace(string(text)), resp.Header
}

func TestPushAction(t *testing.T) {
	service := pushtest.New()
	defer service.Close()
	sub := service.Subscribe()
	env := []string{"MOBILE_TOKEN=" + mainToken, "MOBILE_PUSH_CONTACT=mailto:me@example.com", "MOBILE_PUSH_HOSTS=" + pushtest.Host}
	r := start(t, append(env, "MOBILE_PUSH_ACTIONS=yes")...)
	d := r.connect("d", mainToken)
	params, err := json.Marshal(push.Target{Kind: push.UnifiedPush, Endpoint: sub.Endpoint, Keys: &push.Secret{P256dh: sub.P256dh, Auth: sub.Auth}, Content: true})
	ok(t, err)
	d.send(&frame.Call{ID: "r", Method: "push.register", Params: params})
	if a := find[*frame.Result](d); a.Err != nil {
		t.Fatalf("%+v", a.Err)
	}
	ok(t, d.ws.CloseNow())
	until(t, "the device to be gone", func() bool { return r.server.hub.Connections() == 0 })
	r.server.hub.Post("d", nil, agent.Ask{Card: agent.Card{ID: "c1", Kind: frame.ExecApproval, Text: "secret words", Command: "rm",
		Options: []agent.Option{{ID: "once", Label: "Once"}, {ID: "deny", Label: "Deny"}}}})
	n := <-service.Got
	ok(t, n.Err)
	var body struct{ Actions []struct{ ID, Token string } }
	ok(t, json.Unmarshal([]byte(n.Body), &body))
	if len(body.Actions) != 2 {
		t.Fatalf("%s", n.Body)
	}
	once, deny := `{"token":"`+body.Actions[0].Token+`"}`, `{"token":"`+body.Actions[1].Token+`"}`

	for name, tc := range map[string]struct {
		body, header string
		status       int
	}{"another origin": {once, "Origin: https://evil.example", 403}, "no JSON": {once, "Content-Type: text/plain", 415}, "a form": {once, "Content-Type: application/x-www-form-urlencoded", 415},
		"half": {once[:20], "", 400}, "nothing": {"", "", 400}, "no token": {"{}", "", 400}, "too much": {strings.Repeat(" ", 5000) + once, "", 400}, "forged": {`{"token":"x.y"}`, "", 403}} {
		status, text, h := r.press(tc.body, tc.header)
		if status != tc.status || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _ := r.get("/push/action"); status == http.StatusOK {
		t.Error("a link can decide")
	}
	status, text, h := r.press(once, "Origin: "+r.url(""))
	if status != http.StatusOK || text != `{"done":true,"option_id":"once"}` || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", status, text)
	}
	for _, again := range []string{once, deny} {
		if status, text, _ := r.press(again); status != http.StatusConflict || text != `{"done":false,"option_id":"once","message":"This was already decided: once."}` {
			t.Errorf("again: %d %s", status, text)
		}
	}
	d = r.connect("d", mainToken)
	if done := find[*frame.PromptDone](d); done.OptionID != "once" {
		t.Errorf("%+v", done)
	}
	// A token that an earlier version signed for a card that no notification can show.
	r.server.hub.Post("d", nil, agent.Ask{Card: agent.Card{ID: "c2", Kind: frame.ExecApproval, Command: "ls\n\nrm", Options: []agent.Option{{ID: "once"}, {ID: "deny"}}}})
	find[*frame.Prompt](d)
	claim := fmt.Appendf(nil, `{"d":"d","c":"c2","o":"once","e":%d}`, time.Now().Add(time.Hour).Unix())
	seal := hmac.New(sha256.New, r.server.linkKey[:])
	seal.Write(append([]byte("hermes-mobile push action\n"), claim...))
	signed := base64.RawURLEncoding.EncodeToString(claim) + "." + base64.RawURLEncoding.EncodeToString(seal.Sum(nil))
	if status, text, _ := r.press(`{"token":"` + signed + `"}`); status != http.StatusForbidden || !strings.Contains(text, "open the app to read") {
		t.Errorf("of a question that was not shown: %d %s", status, text)
	}
	for range 10 {
		r.press(`{"token":"x.y"}`)
	}
	if status, _, h := r.press(deny); status != http.StatusTooManyRequests || h.Get("Retry-After") == "" {
		t.Errorf("a guesser gets %d", status)
	}
	for _, secret := range []string{n.Path, sub.Auth, sub.P256dh, "secret words", body.Actions[0].Token} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if text, err := r.admin.Text(t.Context(), "/metrics"); err != nil || !strings.Contains(text, `hermes_mobile_pushes_total{outcome="sent"}`) {
		t.Error("it is not counted")
	}
	if status, _, _ := start(t, env...).press(once); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		t.Errorf("without MOBILE_PUSH_ACTIONS it answers %d", status)
	}
}
