package apiproxy

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func (c *client) form(change ...func(*http.Request)) func(values url.Values) *http.Response {
	return func(values url.Values) *http.Response {
		c.t.Helper()
		return c.send(c.t.Context(), "POST", "/login", values.Encode(), append([]func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}, change...)...)
	}
}

// TestLoginPage: login_url leads to a form that works without scripts, in the browser's language,
// under a policy of its own.
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
	for range guessesNetwork.Burst {
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

// TestNextStaysHere: wherever a link to the login says that it goes on, a browser stays at this
// server, after the form and after the login of an app.
func TestNextStaysHere(t *testing.T) {
	r := newRig(t, wide)
	here, err := url.Parse(r.url)
	ok(t, err)
	for _, next := range []string{"https://evil.example", "//evil.example", "///evil.example", `\\evil.example`, `/\evil.example`, `\/evil.example`, "/\t/evil.example", "\t//evil.example", "/\n/evil.example",
		"/\r\nSet-Cookie: x=y", " //evil.example", "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "evil.example", "@evil.example", "/@evil.example", ":@evil.example", "/x/..//evil.example",
		"/..//evil.example", "/.//evil.example", "/%2f/evil.example", "/%5cevil.example", "/?https://evil.example", "/#//evil.example", "/x?y=//z", "http:evil.example", "http:/evil.example", "/\x00/evil.example",
		"/\u2028/evil.example", "／／evil.example", "/\u3002/evil.example", "?x", "#x", "/login", "", strings.Repeat("/", 5000), "/" + strings.Repeat("a", 5000)} {
		r.clock.pass(time.Minute) // so many logins are too many at once
		c := r.client()
		resp := c.form()(url.Values{"username": {"anna"}, "password": {password}, "next": {next}})
		_ = resp.Body.Close()
		to := resp.Header.Get("Location")
		if resp.StatusCode != 303 || len(resp.Header.Values("Location")) != 1 || resp.Header.Get("X-Evil") != "" {
			t.Errorf("next %.40q: %d", next, resp.StatusCode)
		}
		// What browsers do before they read an address: they drop tabs and line ends and take \ for
		// /.
		seen := strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(strings.Trim(to, " \x00"))
		at, err := here.Parse(seen)
		if err != nil || at.Host != here.Host || at.Scheme != here.Scheme || strings.HasPrefix(seen, "//") || !strings.HasPrefix(seen, "/") {
			t.Errorf("next %.40q leads to %q: %v, %v", next, to, at, err)
		}
		_, text := r.client().do("POST", "/auth/password-login", string(must(json.Marshal(map[string]string{"provider": "basic", "username": "anna", "password": password, "next": next}))),
			header("Content-Type", "application/json"))
		var said struct{ Next string }
		ok(t, json.Unmarshal([]byte(text), &said))
		if at, err := here.Parse(strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(said.Next)); err == nil && at.Host != here.Host || strings.HasPrefix(said.Next, "//") || !strings.HasPrefix(said.Next, "/") {
			t.Errorf("next %.40q is %q for an app", next, said.Next)
		}
	}
}

// TestLoginPageShowsNoMarkup: what a link or a form brings is text on the page, and never runs.
func TestLoginPageShowsNoMarkup(t *testing.T) {
	r := newRig(t, wide)
	c := r.client()
	for _, evil := range []string{`"><script>alert(1)</script>`, `' onfocus='alert(1)' autofocus='`, `"><img src=x onerror=alert(1)>`, `</title><svg onload=alert(1)>`, `{{.Words.Title}}`, "\x00<script>", "\xff\"><b>"} {
		r.clock.pass(time.Minute)
		_, page := c.do("GET", "/login?next="+url.QueryEscape(evil), "", header("Accept", "text/html"))
		resp := c.form()(url.Values{"username": {evil}, "password": {"x"}, "next": {evil}})
		text := bodyOf(t, resp)
		for _, html := range []string{page, text} {
			if strings.Count(html, "<") != strings.Count(html, ">") || strings.Contains(html, "<script") || strings.Contains(html, "<img") || strings.Contains(html, "<svg") || strings.Contains(html, "<b>") ||
				strings.Contains(html, `autofocus='"`) || strings.Count(html, "<input") != 3 {
				t.Errorf("%q: %s", evil, html)
			}
		}
		if resp.Header.Get("Content-Security-Policy") != loginPolicy || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%q: the page of a wrong login has %v", evil, resp.Header)
		}
	}
	for _, accept := range []string{"", "*/*", "application/json"} {
		if _, text := c.do("GET", "/login?next=<script>", "", header("Accept", accept)); strings.Contains(text, "<") {
			t.Errorf("Accept %q gets %s", accept, text)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
