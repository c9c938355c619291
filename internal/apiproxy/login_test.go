package apiproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func loginBody(name, password string) string {
	return fmt.Sprintf(`{"provider":"basic","username":%q,"password":%q,"next":"/sessions"}`, name, password)
}

// TestLogin: the answers are those of Hermes' own dashboard.
func TestLogin(t *testing.T) {
	r := newRig(t)
	c := r.client()
	c.want(200, "GET", "/api/auth/providers", "", `{"providers":[{"display_name":"Username \u0026 Password","name":"basic","supports_password":true}]}`)
	c.want(401, "GET", "/api/auth/me", "", `"error":"unauthenticated"`, `"reason":"no_cookie"`, `"login_url":"/login"`, `"detail":"Unauthorized"`)
	c.want(401, "GET", "/v1/capabilities", "")
	c.want(401, "GET", "/v1/models", "")

	resp := c.send(t.Context(), "POST", "/auth/password-login", loginBody(" Anna", password))
	defer resp.Body.Close()
	if resp.StatusCode != 200 || len(resp.Cookies()) != 3 {
		t.Fatalf("%d %v", resp.StatusCode, resp.Cookies())
	}
	ages := map[string]int{"hermes_session_at": 43200, "hermes_session_rt": 2592000, "hermes_session_provider": 2592000}
	for _, k := range resp.Cookies() {
		if k.MaxAge != ages[k.Name] || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Secure || k.Domain != "" {
			t.Errorf("%+v", k)
		}
	}
	var me struct {
		User     string `json:"user_id"`
		Name     string `json:"display_name"`
		Provider string
		Expires  int64 `json:"expires_at"`
	}
	ok(t, json.Unmarshal([]byte(c.want(200, "GET", "/api/auth/me", "")), &me))
	if me.User != "anna" || me.Name != "anna" || me.Provider != "basic" || me.Expires != r.clock.now().Add(accessLife).Unix() {
		t.Errorf("%+v", me)
	}
	if next := localPath("//evil.example"); next != "/" {
		t.Errorf("after the login it goes to %s", next)
	}

	// A value in double quotes, as the dashboard sends it, comes back in them.
	quoted := r.client()
	for _, form := range []string{`hermes_session_at="%s"`, `hermes_session_at=%s`} {
		if status, _ := quoted.do("GET", "/api/auth/me", "", header("Cookie", fmt.Sprintf(form, c.cookies()["hermes_session_at"]))); status != 200 {
			t.Errorf("%s: %d", form, status)
		}
	}
	// A cookie is no bearer.
	if status, _ := quoted.do("GET", "/api/auth/me", "", header("Authorization", "Bearer "+c.cookies()["hermes_session_at"])); status != 401 {
		t.Errorf("as a bearer the cookie is answered with %d", status)
	}
	// The refresh token is no access token.
	if status, _ := quoted.do("GET", "/api/auth/me", "", header("Cookie", "hermes_session_at="+c.cookies()["hermes_session_rt"])); status != 401 {
		t.Errorf("a refresh token as an access token is answered with %d", status)
	}
}

func TestLoginRefused(t *testing.T) {
	r := newRig(t)
	for name, tc := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"wrong":       {loginBody("anna", "SECRET-wrong"), 401, `{"detail":"Invalid credentials"}`},
		"unknown":     {loginBody("nobody", "SECRET-wrong"), 401, `{"detail":"Invalid credentials"}`},
		"too long":    {loginBody("anna", "SECRET"+strings.Repeat("x", 2000)), 401, "Invalid credentials"},
		"provider":    {`{"provider":"zzz","username":"anna","password":"SECRET"}`, 404, `{"detail":"Unknown provider"}`},
		"no provider": {`{"username":"anna","password":"SECRET"}`, 422, `{"detail":[{"type":"missing","loc":["body","provider"],"msg":"Field required"}]}`},
		"no password": {`{"provider":"basic","username":"SECRET"}`, 422, `["body","password"]`},
		"a number":    {`{"provider":"basic","username":"anna","password":1234567890}`, 422, `string_type`},
		"null":        {`{"provider":"basic","username":"anna","password":null}`, 422, `string_type`},
		"a form":      {`provider=basic&username=anna&password=SECRET`, 422, `model_attributes_type`},
		"an array":    {`["SECRET"]`, 422, `model_attributes_type`},
		"nothing":     {``, 422, `model_attributes_type`},
		"huge":        {loginBody("anna", strings.Repeat("SECRET", 10000)), 413, "too large"},
	} {
		r.addr = netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", len(name)))
		text := r.client().want(tc.status, "POST", "/auth/password-login", tc.body, tc.says)
		if strings.Contains(text, "SECRET") || strings.Contains(text, "1234567890") {
			t.Errorf("%s: the answer repeats what was sent: %s", name, text)
		}
	}
	c := r.client()
	if status, _ := c.do("POST", "/auth/password-login", loginBody("anna", password), header("Content-Type", "text/plain")); status != 422 {
		t.Errorf("JSON of another type, which a foreign page can send, is answered with %d", status)
	}
	for _, h := range [][2]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if status, _ := c.do("POST", "/auth/password-login", loginBody("anna", password), header(h[0], h[1])); status != 403 {
			t.Errorf("%v is answered with %d", h, status)
		}
	}
	if status, _ := c.do("POST", "/auth/password-login", loginBody("anna", password), header("Origin", r.url), header("Sec-Fetch-Site", "same-origin")); status != 200 {
		t.Errorf("an own page is answered with %d", status)
	}
}

func TestRefresh(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	first := c.cookies()
	only := func(at, rt string) map[string]string {
		out := map[string]string{}
		if at != "" {
			out[accessCookie] = at
		}
		if rt != "" {
			out[refreshCookie] = rt
		}
		return out
	}

	// Without an access token, and with one that has expired: served, with new cookies.
	c.setCookies(only("", first[refreshCookie]))
	c.want(200, "GET", "/v1/models", "")
	second := c.cookies()
	if second[accessCookie] == "" || second[refreshCookie] == first[refreshCookie] || second[providerCookie] != provider {
		t.Fatalf("the cookies are %v", second)
	}
	// A request at the same time comes with the old one; so does one whose answer was lost, however
	// late.
	other := r.client()
	other.setCookies(only("", first[refreshCookie]))
	other.want(200, "GET", "/api/auth/me", "")
	r.clock.pass(time.Hour)
	other.setCookies(only("", first[refreshCookie]))
	other.want(200, "GET", "/api/auth/me", "")
	// Once a newer one was used, the old one is good for a minute more.
	c.want(200, "GET", "/api/auth/me", "")
	other.setCookies(only("", first[refreshCookie]))
	other.want(200, "GET", "/api/auth/me", "")
	// Then it was stolen, or the newer one was: the login ends, for both.
	r.clock.pass(refreshGrace + time.Second)
	c.want(200, "GET", "/api/auth/me", "")
	other.setCookies(only("", first[refreshCookie]))
	other.want(401, "GET", "/api/auth/me", "", "session_expired", "invalid_or_expired_session")
	if len(other.cookies()) != 0 {
		t.Errorf("the dead cookies stay: %v", other.cookies())
	}
	c.want(401, "GET", "/api/auth/me", "")

	// Garbage.
	c.setCookies(only("garbage", ""))
	c.want(401, "GET", "/v1/models", "", "session_expired")

	// Time.
	c = r.login("anna")
	r.clock.pass(accessLife + time.Second)
	old := c.cookies()
	c.want(200, "GET", "/api/auth/me", "")
	if c.cookies()[accessCookie] == old[accessCookie] {
		t.Error("an access token holds for longer than it should")
	}
	r.clock.pass(refreshLife + time.Second)
	c.want(401, "GET", "/api/auth/me", "", "session_expired")
}

func TestLogout(t *testing.T) {
	r := newRig(t)
	c, other := r.login("anna"), r.login("anna")
	old := c.cookies()
	if status, _ := c.do("POST", "/auth/logout", "", header("Origin", "https://evil.example")); status != 403 {
		t.Errorf("another page is answered with %d", status)
	}
	resp := c.send(t.Context(), "POST", "/auth/logout", "")
	_ = resp.Body.Close()
	if resp.StatusCode != 302 || resp.Header.Get("Location") != "/login" || len(c.cookies()) != 0 {
		t.Errorf("%d to %q, cookies %v", resp.StatusCode, resp.Header.Get("Location"), c.cookies())
	}
	c.setCookies(old) // whoever kept them
	c.want(401, "GET", "/api/auth/me", "")
	other.want(200, "GET", "/api/auth/me", "")
	r.client().want(302, "POST", "/auth/logout", "")
	r.client().want(200, "GET", "/login", "", "password-login")
}

func TestLoginsAreBounded(t *testing.T) {
	r := newRig(t)
	first := r.login("anna")
	for range maxLogins {
		r.clock.pass(time.Minute)
		r.login("anna")
	}
	first.want(401, "GET", "/api/auth/me", "")
	// Who logs in again has one login, and not two.
	c := r.login("bert")
	old := c.cookies()
	c.want(200, "POST", "/auth/password-login", loginBody("bert", password))
	c.setCookies(old)
	c.want(401, "GET", "/api/auth/me", "")
}

// TestEncrypted: behind https the cookies have the prefix that keeps others from setting them.
func TestEncrypted(t *testing.T) {
	r := newRig(t)
	r.https = true
	resp := r.client().send(t.Context(), "POST", "/auth/password-login", loginBody("anna", password))
	_ = resp.Body.Close()
	var line []string
	for _, k := range resp.Cookies() {
		if !strings.HasPrefix(k.Name, "__Host-hermes_session_") || !k.Secure || !k.HttpOnly || k.Path != "/" || k.Domain != "" {
			t.Errorf("%+v", k)
		}
		line = append(line, k.Name+"="+k.Value)
	}
	c := r.client()
	if status, _ := c.do("GET", "/api/auth/me", "", header("Cookie", strings.Join(line, "; "))); status != 200 {
		t.Errorf("with them it is %d", status)
	}
	if status, _ := c.do("GET", "/api/auth/me", "", header("Cookie", strings.ReplaceAll(strings.Join(line, "; "), "__Host-", ""))); status != 401 {
		t.Errorf("without the prefix they are taken: %d", status)
	}
}

func TestUserGone(t *testing.T) {
	r := newRig(t)
	for name, change := range map[string]func() (string, error){
		"anna": func() (string, error) { return r.users.Remove(t.Context(), "Anna") },
		"bert": func() (string, error) { return r.users.SetPassword(t.Context(), "bert", "another password") },
	} {
		c := r.login(name)
		_, body := c.do("POST", "/api/sessions", "{}")
		var made struct{ Session struct{ ID string } }
		ok(t, json.Unmarshal([]byte(body), &made))
		streaming := c.send(t.Context(), "POST", "/api/sessions/"+made.Session.ID+"/chat/stream", `{"message":"x"}`)
		id, err := change()
		ok(t, err)
		r.proxy.EndUser(id)
		select {
		case <-r.up.gone:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the stream goes on", name)
		}
		_ = streaming.Body.Close()
		c.want(401, "GET", "/api/auth/me", "")
		r.client().want(401, "POST", "/auth/password-login", loginBody(name, password))
	}
	r.client().want(200, "POST", "/auth/password-login", loginBody("bert", "another password"))
}
