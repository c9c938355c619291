package front

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func (c *client) form(change ...func(*http.Request)) func(values url.Values) *http.Response {
	return func(values url.Values) *http.Response {
		c.t.Helper()
		return c.send(c.t.Context(), "POST", "/login", values.Encode(), append([]func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}, change...)...)
	}
}

// TestLoginPage: login_url leads to a form that works without scripts, in the browser's language, under a policy of its own.
func TestLoginPage(t *testing.T) {
	r := newRig(t)
	c := r.client()
	html := header("Accept", "text/html,application/xhtml+xml")
	_, page := c.do("GET", "/login?next=%2Fsessions%22%3E%3Cscript%3E", "", html)
	for _, part := range []string{`<form method="post" action="/login">`, `name="username"`, `type="password"`, "Log in", `value="/sessions&#34;&gt;&lt;script&gt;"`, `lang="en"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s:\n%s", part, page)
		}
	}
	if _, page := c.do("GET", "/login", "", html, header("Accept-Language", "ru-RU,en;q=0.8")); !strings.Contains(page, `lang="ru"`) || !strings.Contains(page, "Войти") {
		t.Errorf("in Russian it is\n%s", page)
	}
	resp := c.send(t.Context(), "GET", "/login", "", html)
	_ = resp.Body.Close()
	if policy := resp.Header.Get("Content-Security-Policy"); policy != loginPolicy || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "script") ||
		resp.Header.Get("Referrer-Policy") != "same-origin" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", resp.Header)
	}

	send := c.form(header("Origin", r.url), header("Sec-Fetch-Site", "same-origin"))
	resp = send(url.Values{"username": {"anna"}, "password": {"SECRET <wrong>"}, "next": {"/x"}})
	if text := bodyOf(t, resp); resp.StatusCode != 401 || !strings.Contains(text, english.Wrong) || !strings.Contains(text, `value="anna"`) || strings.Contains(text, "SECRET") || len(c.cookies()) != 0 {
		t.Errorf("a wrong password: %d\n%s", resp.StatusCode, text)
	}
	for next, to := range map[string]string{"": "/login", "/v1/models": "/v1/models", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/"} {
		resp = send(url.Values{"username": {"Anna"}, "password": {password}, "next": {next}})
		_ = resp.Body.Close()
		if resp.StatusCode != 303 || resp.Header.Get("Location") != to {
			t.Errorf("next %q: %d to %q", next, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	c.want(200, "GET", "/v1/models", "")
	if _, page := c.do("GET", "/login", "", html); !strings.Contains(page, "logged in as anna") || strings.Contains(page, "password") {
		t.Errorf("who is in sees\n%s", page)
	}

	// What another page has a browser send is no login.
	for _, h := range [][2]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		resp := r.client().form(header(h[0], h[1]))(url.Values{"username": {"anna"}, "password": {password}})
		_ = resp.Body.Close()
		if resp.StatusCode != 403 || len(resp.Cookies()) != 0 {
			t.Errorf("%v: %d", h, resp.StatusCode)
		}
	}
	r.client().want(415, "POST", "/login", `{"username":"anna","password":"`+password+`"}`)
	r.client().want(413, "POST", "/login", strings.Repeat("x", maxLogin+1))

	// A form is a login: wrong ones are guesses.
	for range int(guessesNetwork.size) {
		_ = send(url.Values{"username": {"x"}, "password": {"wrong"}}).Body.Close()
	}
	resp = send(url.Values{"username": {"bert"}, "password": {password}})
	if text := bodyOf(t, resp); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, english.Later) {
		t.Errorf("after many guesses: %d %s", resp.StatusCode, text)
	}
}

// TestLoginWords: every text is there in every language.
func TestLoginWords(t *testing.T) {
	for _, w := range []loginWords{english, russian} {
		for i, text := range []string{w.Lang, w.Title, w.Text, w.Name, w.Password, w.Submit, w.In, w.Logout, w.Wrong, w.Later, w.Trouble} {
			if text == "" {
				t.Errorf("%s lacks text %d", w.Lang, i)
			}
		}
		if strings.Count(w.In, "%s") != 1 {
			t.Errorf("%s: %q names nobody", w.Lang, w.In)
		}
	}
}
