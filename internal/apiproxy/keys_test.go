package apiproxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/store"
)

// addKey gives a user a key.
func (r *rig) addKey(name, label string, life time.Duration) NewKey {
	r.t.Helper()
	k, err := r.users.AddKey(r.t.Context(), name, label, life)
	ok(r.t, err)
	return k
}

// byKey is an app that has a key.
func byKey(k NewKey) func(*http.Request) { return header("Authorization", "Bearer "+k.Secret.Reveal()) }

// TestKey: with a key a program is its user, as with a login: the same sessions and limits, and no
// cookie in any answer.
func TestKey(t *testing.T) {
	r := newRig(t)
	key := r.addKey("anna", "laptop", 0)
	anna, bert := r.login("anna"), r.login("bert")
	app := r.client()
	id := anna.session()
	if status, text := app.do("GET", "/api/sessions/"+id, "", byKey(key)); status != 200 {
		t.Errorf("the user's session: %d %s", status, text)
	}
	resp := app.send(t.Context(), "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, byKey(key))
	if text := bodyOf(t, resp); resp.StatusCode != 200 || len(resp.Cookies()) != 0 || !strings.Contains(text, "chatcmpl-") {
		t.Errorf("%d %s, cookies %v", resp.StatusCode, text, resp.Cookies())
	}
	if got, _ := r.up.last("/v1/chat/completions"); got.Header.Get("Authorization") != "Bearer "+upstreamKey {
		t.Errorf("the API server got %q", got.Header.Get("Authorization"))
	}
	if status, _ := app.do("GET", "/api/sessions/"+bert.session(), "", byKey(key)); status != 404 {
		t.Errorf("another's session: %d", status)
	}
	if status, text := app.do("GET", "/v1/capabilities", "", byKey(key)); status != 200 || !strings.Contains(text, `"auth":{"type":"bearer","required":true}`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := app.do("GET", "/api/auth/me", "", byKey(key)); status != 200 || !strings.Contains(text, `"user_id":"anna"`) || !strings.Contains(text, `"expires_at":0`) {
		t.Errorf("%d %s", status, text)
	}
	// The scheme is read as HTTP has it.
	for _, form := range []string{"bearer %s", "BEARER %s", "Bearer  %s "} {
		if status, _ := app.do("GET", "/v1/models", "", header("Authorization", fmt.Sprintf(form, key.Secret.Reveal()))); status != 200 {
			t.Errorf("%q: %d", form, status)
		}
	}
}

// TestKeyIsNoCookie: no page can have a browser send a key, so there is nothing to protect it from;
// what cookies say beside it counts for nothing, and a wrong key gets nothing from them.
func TestKeyIsNoCookie(t *testing.T) {
	r := newRig(t)
	key := r.addKey("anna", "", 0)
	bert := r.login("bert")
	for _, h := range [][2]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "null"}} {
		if status, text := bert.do("POST", "/api/sessions", "{}", byKey(key), header(h[0], h[1])); status != 201 {
			t.Errorf("%v with a key: %d %s", h, status, text)
		}
		if status, _ := bert.do("POST", "/api/sessions", "{}", header(h[0], h[1])); status != 403 {
			t.Errorf("%v with cookies: %d", h, status)
		}
		if status, _ := bert.do("POST", "/api/sessions", "{}", header("Authorization", "Basic eDp5"), header(h[0], h[1])); status != 403 {
			t.Errorf("%v with what is no key: %d", h, status)
		}
	}
	if _, text := bert.do("GET", "/api/auth/me", "", byKey(key)); !strings.Contains(text, `"user_id":"anna"`) {
		t.Errorf("beside cookies it is %s", text)
	}
	for _, wrong := range []string{"hmk_wrong", "", "sk-something", bert.cookies()[accessCookie], strings.Repeat("x", 5000)} {
		resp := bert.send(t.Context(), "GET", "/v1/models", "", header("Authorization", "Bearer "+wrong))
		if text := bodyOf(t, resp); resp.StatusCode != 401 || !strings.Contains(text, `"code":"invalid_api_key"`) || !strings.Contains(text, `"type":"invalid_request_error"`) || resp.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%.20q: %d %s", wrong, resp.StatusCode, text)
		}
		if len(resp.Cookies()) != 0 {
			t.Errorf("%.20q: the answer has cookies", wrong)
		}
	}
	// The key is no cookie.
	if status, _ := r.client().do("GET", "/v1/models", "", header("Cookie", accessCookie+"="+key.Secret.Reveal())); status != 401 {
		t.Errorf("as a cookie: %d", status)
	}
}

// TestWrongKeysAreGuesses: they count for their network, for passwords too, and keep no right key
// out.
func TestWrongKeysAreGuesses(t *testing.T) {
	r := newRig(t)
	key := r.addKey("anna", "", 0)
	app := r.client()
	for i := range 30 {
		resp := app.send(t.Context(), "GET", "/v1/models", "", header("Authorization", fmt.Sprint("Bearer hmk_wrong", i)))
		_ = resp.Body.Close()
		if want := 401; i >= guessesNetwork.Burst {
			want = 429
			if resp.StatusCode != want || resp.Header.Get("Retry-After") == "" {
				t.Errorf("guess %d: %d", i, resp.StatusCode)
			}
		} else if resp.StatusCode != want {
			t.Errorf("guess %d: %d", i, resp.StatusCode)
		}
	}
	if status := r.try("192.0.2.1", "anna", password); status != 429 {
		t.Errorf("a password from there: %d", status)
	}
	if status, _ := app.do("GET", "/v1/models", "", byKey(key)); status != 200 {
		t.Errorf("the right key from there: %d", status)
	}
	for range 100 { // right ones are no guesses, however many
		r.clock.pass(time.Second)
		if status, _ := app.do("GET", "/v1/models", "", byKey(key), header("X-Test-Address", "203.0.113.1")); status != 200 {
			t.Fatalf("%d", status)
		}
	}
	if status := r.try("203.0.113.1", "bert", "wrong"); status != 401 {
		t.Errorf("a password from there: %d", status)
	}
	if n := strings.Count(r.logged(), "key rejected"); n == 0 || n > guessesNetwork.Burst || strings.Contains(r.logged(), "hmk_") {
		t.Errorf("the log is\n%s", r.logged())
	}
}

// TestKeyEnds: a key that was removed, has expired, or whose user is gone is good for nothing at
// once, and what streams by it ends.
func TestKeyEnds(t *testing.T) {
	for name, end := range map[string]func(r *rig, k NewKey){
		"removed": func(r *rig, k NewKey) {
			ok(r.t, r.users.RemoveKey(r.t.Context(), k.ID))
			r.proxy.EndKey(k.ID)
		},
		"user removed": func(r *rig, _ NewKey) {
			id, err := r.users.Remove(r.t.Context(), "anna")
			ok(r.t, err)
			r.proxy.EndUser(id)
		},
	} {
		r := newRig(t)
		key, other := r.addKey("anna", "", 0), r.addKey("bert", "", 0)
		app := r.client()
		stream := func(k NewKey) *http.Response {
			_, text := app.do("POST", "/api/sessions", "{}", byKey(k))
			return app.send(t.Context(), "POST", "/api/sessions/"+made(t, text)+"/chat/stream", `{"message":"x"}`, byKey(k))
		}
		goesOn, ends := stream(other), stream(key)
		end(r, key)
		select {
		case <-r.up.gone:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the stream goes on", name)
		}
		_, _ = io.Copy(io.Discard, ends.Body)
		_ = ends.Body.Close()
		if status, text := app.do("GET", "/v1/models", "", byKey(key)); status != 401 || !strings.Contains(text, "invalid_api_key") {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if status, _ := app.do("GET", "/v1/models", "", byKey(other)); status != 200 {
			t.Errorf("%s: another key: %d", name, status)
		}
		r.up.next <- "data: still\n\n"
		got := make([]byte, 5)
		if _, err := io.ReadFull(goesOn.Body, got); err != nil {
			t.Errorf("%s: another's stream ended: %v", name, err)
		}
		close(r.up.next)
		_ = goesOn.Body.Close()
	}

	r := newRig(t)
	key := r.addKey("anna", "", 90*24*time.Hour)
	app := r.client()
	r.clock.pass(90*24*time.Hour - time.Second)
	if status, _ := app.do("GET", "/v1/models", "", byKey(key)); status != 200 {
		t.Errorf("before its end: %d", status)
	}
	r.clock.pass(time.Second)
	for range 2 * guessesNetwork.Burst { // a program that does not know is told, and guesses nothing
		if status, text := app.do("GET", "/v1/models", "", byKey(key)); status != 401 || !strings.Contains(text, "expired") {
			t.Fatalf("after it: %d %s", status, text)
		}
	}
}

// TestKeysOfUsers: what the owner sees of keys: never the key, and when it was last used; each act
// is in the audit log.
func TestKeysOfUsers(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	key := r.addKey("Anna", " laptop ", time.Hour)
	if secret := key.Secret.Reveal(); !strings.HasPrefix(secret, "hmk_") || len(secret) != len("hmk_")+43 {
		t.Errorf("the key is %q", secret)
	}
	if text := fmt.Sprintf("%v %+v %#v %s %q", key, key, key.Secret, key.Secret, key.Secret); strings.Contains(text, key.Secret.Reveal()) {
		t.Errorf("a key is shown: %s", text)
	}
	if out, err := json.Marshal(key); err != nil || !strings.Contains(string(out), `"key":"`+key.Secret.Reveal()) {
		t.Errorf("%s %v", out, err)
	}
	r.addKey("bert", "", 0)
	list, err := r.users.Keys(ctx, "")
	ok(t, err)
	if len(list) != 2 || list[0].User != "anna" || list[0].Label != "laptop" || list[0].UsedAt != nil || list[0].ExpiresAt == nil || list[1].ExpiresAt != nil || list[0].ID != key.ID {
		t.Errorf("%+v", list)
	}
	if list, err = r.users.Keys(ctx, "anna"); err != nil || len(list) != 1 {
		t.Errorf("%+v %v", list, err)
	}
	if out, _ := json.Marshal(list); strings.Contains(string(out), "hmk_") || strings.Contains(string(out), hashToken(key.Secret.Reveal())) {
		t.Errorf("the list has the key: %s", out)
	}
	// Its last use is known by the minute, without a write for each request.
	used := func() time.Time {
		list, err := r.users.Keys(ctx, "anna")
		ok(t, err)
		return *list[0].UsedAt
	}
	app := r.client()
	_, _ = app.do("GET", "/v1/models", "", byKey(key))
	first := used()
	r.clock.pass(30 * time.Second)
	_, _ = app.do("GET", "/v1/models", "", byKey(key))
	if !used().Equal(first) {
		t.Error("each use is written")
	}
	r.clock.pass(31 * time.Second)
	_, _ = app.do("GET", "/v1/models", "", byKey(key))
	if !used().After(first) {
		t.Error("the last use stays the first")
	}

	for name, err := range map[string]error{
		"nobody":         func() error { _, err := r.users.AddKey(ctx, "nobody", "", 0); return err }(),
		"a long label":   func() error { _, err := r.users.AddKey(ctx, "anna", strings.Repeat("x", 65), 0); return err }(),
		"a line end":     func() error { _, err := r.users.AddKey(ctx, "anna", "a\nb", 0); return err }(),
		"a dead key":     func() error { _, err := r.users.AddKey(ctx, "anna", "", -time.Hour); return err }(),
		"no such key":    r.users.RemoveKey(ctx, "k0000000"),
		"the key itself": r.users.RemoveKey(ctx, key.Secret.Reveal()),
		"keys of nobody": func() error { _, err := r.users.Keys(ctx, "nobody"); return err }(),
	} {
		if err == nil {
			t.Errorf("%s is fine", name)
		} else if strings.Contains(err.Error(), key.Secret.Reveal()) {
			t.Errorf("%s: the error says the key: %v", name, err)
		}
	}
	for range maxKeys - 1 {
		r.addKey("anna", "", 0)
	}
	if _, err := r.users.AddKey(ctx, "anna", "", 0); err == nil || !strings.Contains(err.Error(), "key remove") {
		t.Errorf("one more: %v", err)
	}
	ok(t, r.users.RemoveKey(ctx, key.ID))
	r.addKey("anna", "", 0)

	entries, err := r.store.Audit(ctx, store.AuditFilter{Action: "api_key.*"}, 200)
	ok(t, err)
	if n := len(entries); n != 2+maxKeys-1+1+1 || entries[n-1].Action != "api_key.added" || entries[n-1].Subject != "anna" || entries[n-1].Detail != key.ID+" laptop" ||
		entries[1].Action != "api_key.removed" || entries[1].Detail != key.ID+" laptop" {
		t.Errorf("%d entries: %+v", n, entries[:2])
	}
	for _, e := range entries {
		if strings.Contains(fmt.Sprint(e), "hmk_") {
			t.Errorf("the audit log has a key: %+v", e)
		}
	}
}
