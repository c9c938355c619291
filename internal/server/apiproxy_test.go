package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hermes-mobile/internal/apiproxy"
)

const apiKey = "the-key-of-the-api-server"

// apiServer plays Hermes' API server as far as it takes to be reached.
func apiServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+apiKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"object":"hermes.api_server.capabilities"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestFrontDoor: it is there only where it is switched on, beside everything else, and its users
// are kept by the owner.
func TestFrontDoor(t *testing.T) {
	off := start(t)
	for _, path := range []string{"/health", "/v1/capabilities", "/api/sessions", "/api/auth/providers", "/login"} {
		if status, _ := off.get(path); status != http.StatusNotFound {
			t.Errorf("%s without an API proxy: %d", path, status)
		}
	}

	r := start(t, "MOBILE_FRONT_API=1", "MOBILE_API_URL="+apiServer(t), "MOBILE_API_KEY="+apiKey)
	mustFind(t, r.examined(), "front_no_users", "users add")
	ok(t, r.admin.Post(t.Context(), "/users/add", Command{Name: "Anna", Password: "correct horse"}, nil))
	if err := r.admin.Post(t.Context(), "/users/add", Command{Name: "anna", Password: "correct horse"}, nil); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second anna: %v", err)
	}
	var list []apiproxy.User
	ok(t, r.admin.Get(t.Context(), "/users", &list))
	if len(list) != 1 || list[0].Name != "anna" {
		t.Errorf("%+v", list)
	}
	mustNotFind(t, r.examined(), "front_no_users", "front_api_down")

	login := func(password string) (status int, cookies []*http.Cookie) {
		t.Helper()
		resp, err := r.http.Post(r.url("/auth/password-login"), "application/json", strings.NewReader(fmt.Sprintf(`{"provider":"basic","username":"anna","password":%q}`, password)))
		ok(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode, resp.Cookies()
	}
	status, cookies := login("correct horse")
	if status != http.StatusOK || len(cookies) != 3 {
		t.Fatalf("%d %v", status, cookies)
	}
	get := func(path string) (status int, object string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), "GET", r.url(path), nil)
		ok(t, err)
		for _, c := range cookies {
			q.AddCookie(c)
		}
		resp, err := r.http.Do(q)
		ok(t, err)
		defer resp.Body.Close()
		var out struct{ Object string }
		_ = json.NewDecoder(resp.Body).Decode(&out)
		return resp.StatusCode, out.Object
	}
	if status, object := get("/v1/capabilities"); status != http.StatusOK || object != "hermes.api_server.capabilities" {
		t.Errorf("%d %q", status, object)
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/admin"} { // what was there before
		if status, _ := get(path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	// A key is its user, needs no cookie, and ends by itself.
	var key apiproxy.NewKey
	ok(t, r.admin.Post(t.Context(), "/users/key/add", Command{Name: "anna", Label: "laptop", Seconds: 3600}, &key))
	byKey := func() int {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), "GET", key.BaseURL+"/capabilities", nil)
		ok(t, err)
		q.Header.Set("Authorization", "Bearer "+key.Secret.Reveal())
		resp, err := r.http.Do(q)
		ok(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if status := byKey(); status != http.StatusOK || key.ExpiresAt == nil {
		t.Errorf("with a key: %d", status)
	}
	for _, seconds := range []int64{-1, 1 << 40} {
		if err := r.admin.Post(t.Context(), "/users/key/add", Command{Name: "anna", Seconds: seconds}, nil); err == nil {
			t.Errorf("a key for %d seconds is made", seconds)
		}
	}
	var keys []apiproxy.Key
	ok(t, r.admin.Get(t.Context(), "/users/key", &keys))
	if len(keys) != 1 || keys[0].ID != key.ID || keys[0].UsedAt == nil {
		t.Errorf("%+v", keys)
	}
	ok(t, r.admin.Post(t.Context(), "/users/key/remove", Command{ID: key.ID}, nil))
	if status := byKey(); status != http.StatusUnauthorized {
		t.Errorf("with a key that was removed: %d", status)
	}
	ok(t, r.admin.Post(t.Context(), "/users/passwd", Command{Name: "anna", Password: "another horse"}, nil))
	if status, _ := get("/v1/capabilities"); status != http.StatusUnauthorized {
		t.Errorf("after another password: %d", status)
	}
	if status, _ := login("correct horse"); status != http.StatusUnauthorized {
		t.Errorf("with the old password: %d", status)
	}
	ok(t, r.admin.Post(t.Context(), "/users/remove", Command{Name: "anna"}, nil))
	if status, _ := login("another horse"); status != http.StatusUnauthorized {
		t.Errorf("who was removed: %d", status)
	}
	if text := r.log.String(); strings.Contains(text, "horse") || strings.Contains(text, apiKey) {
		t.Errorf("the log holds a secret:\n%s", text)
	}
	if text := fmt.Sprintf("%v %+v %#v %s %d", Password("horse"), Command{Password: "horse"}, Password("horse"), Password("horse"), Password("horse")); strings.Contains(text, "horse") {
		t.Errorf("a password is shown: %s", text)
	}
}

// TestFrontDoorLeadsNowhere: the doctor says why.
func TestFrontDoorLeadsNowhere(t *testing.T) {
	r := start(t, "MOBILE_FRONT_API=1", "MOBILE_API_URL="+apiServer(t), "MOBILE_API_KEY=another-key-than-it-has")
	mustFind(t, r.examined(), "front_api_down", "rejects the key")
	ok(t, r.stop())
	r = start(t, "MOBILE_FRONT_API=1", "MOBILE_API_URL=http://127.0.0.1:1")
	mustFind(t, r.examined(), "front_api_down", "no key")
}
