package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dashboard is a gateway behind a login, as described in doc/hermes/api.md §10.
type dashboard struct {
	*hermes
	mu       sync.Mutex
	prefix   string // of cookie names
	password string
	serial   int
	live     map[string]bool // valid values of hermes_session_at
	answer   func(w http.ResponseWriter, r *http.Request) bool
	posts    []string
}

func newDashboard(t *testing.T) *dashboard {
	d := &dashboard{hermes: newHermes(t, "0.22.2"), prefix: "__Host-", password: testPassword, live: map[string]bool{}}
	d.hermes.admit = d.admits
	d.routes["/api/auth/providers"] = func(w http.ResponseWriter, r *http.Request) {
		recordedAnswers()["0.22.2"]["dash_auth_providers"].answer(w)
	}
	d.routes["/auth/password-login"] = d.login
	d.routes["/auth/logout"] = func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		clear(d.live)
		d.mu.Unlock()
		recordedAnswers()["0.22.2"]["dash_logout"].answer(w)
	}
	return d
}

func (d *dashboard) admits(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for value := range d.live {
		if strings.Contains(r.Header.Get("Cookie"), d.prefix+"hermes_session_at="+value) {
			return true
		}
	}
	return false
}

func (d *dashboard) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.live)
}

// cookies returns the Set-Cookie headers of a new session. The value is in quotes, like that of a
// real gateway.
func (d *dashboard) cookies() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial++
	value := fmt.Sprintf(`"at-secret-%d="`, d.serial)
	d.live[value] = true
	end := "; HttpOnly; Max-Age=43200; Path=/; SameSite=lax"
	if d.prefix != "" {
		end += "; Secure"
	}
	return []string{
		d.prefix + "hermes_session_at=" + value + end, d.prefix + "hermes_session_rt=rt-secret" + end, d.prefix + "hermes_session_provider=basic" + end,
		"tracker=1; Path=/", "hermes_session_pkce=x; Path=/",
	}
}

func (d *dashboard) login(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.posts = append(d.posts, string(body))
	answer, password := d.answer, d.password
	d.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	var in struct{ Provider, Username, Password *string }
	of := recordedAnswers()["0.22.2"]
	switch {
	case json.Unmarshal(body, &in) != nil || in.Provider == nil || in.Username == nil || in.Password == nil:
		w.WriteHeader(422)
		fmt.Fprintf(w, `{"detail":[{"input":%q}]}`, body)
	case *in.Provider != "basic":
		of["dash_password_login_unknown_provider"].answer(w)
	case *in.Username != testUser || *in.Password != password:
		of["dash_password_login_wrong"].answer(w)
	default:
		for _, cookie := range d.cookies() {
			w.Header().Add("Set-Cookie", cookie)
		}
		io.WriteString(w, `{"ok":true,"next":"/"}`)
	}
}

func (d *dashboard) tries() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.posts)
}

func keeping(kept *[]Credentials) func(*Credentials, *Options) {
	return func(_ *Credentials, o *Options) { o.OnCredentials = func(c Credentials) { *kept = append(*kept, c) } }
}

func TestLogin(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"__Host-", "__Secure-", ""} {
		d := newDashboard(t)
		d.prefix = prefix
		local, remote := serve(t, d), serve(t, d)
		var kept []Credentials
		c := client(t, Profile{Remote: remote.URL, Local: local.URL, Auth: AuthPassword}, keeping(&kept))
		if _, err := c.Connect(t.Context()); !errors.Is(err, ErrSignIn) || !errors.Is(err, ErrNoRoute) {
			t.Fatalf("before the login: %v", err)
		}
		if err := c.Login(t.Context(), NewSecret(testPassword)); err != nil {
			t.Fatal(err)
		}
		if d.posts[0] != `{"next":"","password":"`+testPassword+`","provider":"basic","username":"phone"}` {
			t.Errorf("the login was %s", d.posts[0])
		}
		local.gotNothingSecret(testPassword)
		on(t, c, Local)
		want := prefix + `hermes_session_at="at-secret-1="; ` + prefix + `hermes_session_rt=rt-secret; ` + prefix + "hermes_session_provider=basic"
		if !strings.Contains(local.bytes(), "\r\nCookie: "+want+"\r\n") {
			t.Errorf("the local address was sent %q, want the cookies %q", local.bytes(), want)
		}
		if strings.Contains(local.bytes(), testPassword) || strings.Contains(local.bytes()+remote.bytes(), "tracker") || strings.Contains(local.bytes(), "Authorization") {
			t.Error("more was sent than the session")
		}
		if len(kept) != 1 || len(kept[0].cookies) != 3 || kept[0].Password.Reveal() != testPassword || kept[0].cookies[0].expires.IsZero() {
			t.Fatalf("kept %v", kept)
		}
		// The host program stores them, and after a restart they still work.
		secret, err := kept[0].Export()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseCredentials(secret)
		if err != nil || !sameCredentials(back, kept[0]) {
			t.Fatalf("read back %v, %v", back, err)
		}
		again := client(t, c.Profile(), func(creds *Credentials, _ *Options) { *creds = back })
		on(t, again, Local)
		if d.tries() != 1 {
			t.Error("a kept session was not used")
		}
		if err := again.Logout(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := again.Connect(t.Context()); !errors.Is(err, ErrSignIn) || d.tries() != 1 {
			t.Errorf("after the logout: %v, %d logins", err, d.tries())
		}
	}
}

func sameCredentials(a, b Credentials) bool {
	return a.Token == b.Token && a.Password == b.Password && a.Account == b.Account && slices.EqualFunc(a.cookies, b.cookies, func(a, b loginCookie) bool {
		return a.name == b.name && a.value == b.value && a.secure == b.secure && a.expires.Equal(b.expires)
	})
}

func TestLoginThatFails(t *testing.T) {
	t.Parallel()
	of := recordedAnswers()["0.22.2"]
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	withCookie := func(w http.ResponseWriter) {
		w.Header().Add("Set-Cookie", "__Host-hermes_session_at=stolen; Path=/; Secure")
	}
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		status int
		signIn bool
		wait   time.Duration
	}{
		"wrong":    {func(w http.ResponseWriter, r *http.Request) { withCookie(w); of["dash_password_login_wrong"].answer(w) }, 401, true, 0},
		"provider": {func(w http.ResponseWriter, r *http.Request) { of["dash_password_login_unknown_provider"].answer(w) }, 404, false, 0},
		"echo": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"detail":"%s"}`, testPassword)
		}, 422, false, 0},
		"host": {func(w http.ResponseWriter, r *http.Request) { of["dash_password_login_bad_host"].answer(w) }, 400, false, 0},
		"rate": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			of["dash_password_login_rate_limited"].answer(w)
		}, 429, false, 7 * time.Second},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			withCookie(w)
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 307, false, 0},
		"no cookie": {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"ok":true}`) }, 200, false, 0},
		"bad cookie": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Set-Cookie", "hermes_session_at=a b; Path=/")
		}, 200, false, 0},
		"fell over": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); fmt.Fprint(w, testPassword) }, 500, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDashboard(t)
			var kept []Credentials
			remote := serve(t, d)
			c := client(t, Profile{Remote: remote.URL, Auth: AuthPassword}, keeping(&kept))
			if err := c.Login(t.Context(), NewSecret(testPassword)); err != nil {
				t.Fatal(err)
			}
			d.mu.Lock()
			d.answer = func(w http.ResponseWriter, r *http.Request) bool { tc.answer(w, r); return true }
			d.mu.Unlock()
			err := c.Login(t.Context(), NewSecret(testPassword+"2"))
			var refused *Error
			if !errors.As(err, &refused) || refused.Status != tc.status || errors.Is(err, ErrSignIn) != tc.signIn || refused.RetryAfter != tc.wait {
				t.Fatalf("the error is %#v", err)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the error quotes the answer: %v", err)
			}
			if last := kept[len(kept)-1]; len(last.cookies) != 0 {
				t.Errorf("the old session is still kept: %d cookies", len(last.cookies))
			}
			remote.forget()
			c.Connect(t.Context())
			if strings.Contains(remote.bytes(), "Cookie:") || strings.Contains(remote.bytes(), "stolen") {
				t.Errorf("after a failed login a cookie was sent: %s", remote.bytes())
			}
		})
	}
	t.Cleanup(func() { elsewhere.gotNothingSecret(testPassword) })
}

// The password is not sent if no Hermes gateway answers.
func TestLoginAtAPortal(t *testing.T) {
	t.Parallel()
	portal := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "hermes_session_at=x; Path=/")
		io.WriteString(w, "<html>")
	}))
	c := client(t, Profile{Remote: portal.URL, Auth: AuthPassword})
	if err := c.Login(t.Context(), NewSecret(testPassword)); err == nil {
		t.Error("a portal took the login")
	}
	portal.gotNothingSecret(testPassword, testUser)
}

func TestLoginProvider(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"providers":[{"name":"oidc","supports_password":false},{"name":"ldap","supports_password":true}]}`: "ldap",
		`{"providers":[{"name":"ldap","supports_password":true},{"name":"basic","supports_password":true}]}`: "basic",
		`{"providers":[]}`: "basic", `[]`: "basic", `<html>`: "basic",
	} {
		d := newDashboard(t)
		d.routes["/api/auth/providers"] = func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer) }
		c := client(t, Profile{Remote: serve(t, d).URL, Auth: AuthPassword})
		c.Login(t.Context(), NewSecret("x"))
		if len(d.posts) != 1 || !strings.Contains(d.posts[0], `"provider":"`+want+`"`) {
			t.Errorf("%s: the login was %v", answer, d.posts)
		}
	}
}

// The client signs in again with the stored password when a session has ended, once for all
// requests, and repeats the refused request.
func TestSilentLogin(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	remote := serve(t, d)
	var made []string
	d.routes["POST /api/sessions"] = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		made = append(made, string(body))
		d.mu.Unlock()
		recordedAnswers()["0.22.2"]["session_create_named"].answer(w)
	}
	c := client(t, Profile{Remote: remote.URL, Auth: AuthPassword}, func(creds *Credentials, _ *Options) { creds.Password = NewSecret(testPassword) })
	on(t, c, Remote) // without a session: the stored password opens one
	d.expire()
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { _, err := c.Sessions.Create(t.Context(), SessionParams{Title: "t"}); errs <- err }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if len(made) != cap(errs) || made[0] != `{"title":"t"}` {
		t.Errorf("%d sessions were made: %v", len(made), made)
	}
	if d.tries() != 2 {
		t.Errorf("%d logins were made, want 2", d.tries())
	}
	// The password was changed: the client tries the old one once.
	d.mu.Lock()
	d.password = "another"
	d.mu.Unlock()
	d.expire()
	for range 4 {
		if _, err := c.Sessions.List(t.Context(), SessionQuery{}); !errors.Is(err, ErrSignIn) {
			t.Errorf("with a wrong password: %v", err)
		}
	}
	if d.tries() != 3 {
		t.Errorf("a wrong password was tried %d times", d.tries()-2)
	}
	if err := c.Login(t.Context(), NewSecret("another")); err != nil {
		t.Fatal(err)
	}
	on(t, c, Remote)
}

// The client does not use a Local address that does not know the session of the Remote one, and it
// does not sign in again and again.
func TestLocalThatKnowsNoSession(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	other := newHermes(t, "0.22.2")
	other.admit = func(*http.Request) bool { return false }
	local, remote := serve(t, other), serve(t, d)
	c := client(t, Profile{Remote: remote.URL, Local: local.URL, Auth: AuthPassword}, func(creds *Credentials, _ *Options) { creds.Password = NewSecret(testPassword) })
	for range 3 {
		c.NetworkChanged()
		if route := on(t, c, Remote); !strings.Contains(route.Reason, "refused the credential") {
			t.Errorf("the reason is %q", route.Reason)
		}
	}
	if d.tries() != 1 {
		t.Errorf("%d logins were made", d.tries())
	}
}

// Cookies that a gateway sets on any response replace the old ones, and the host program is told.
func TestRefresh(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	remote := serve(t, d)
	var kept []Credentials
	c := client(t, Profile{Remote: remote.URL, Auth: AuthPassword}, keeping(&kept))
	if err := c.Login(t.Context(), NewSecret(testPassword)); err != nil {
		t.Fatal(err)
	}
	on(t, c, Remote)
	fresh := d.cookies()
	d.routes["/api/sessions"] = func(w http.ResponseWriter, r *http.Request) {
		for _, cookie := range append(fresh, "__Host-hermes_session_rt=evil; Path=/", "__Host-hermes_session_provider=x y; Path=/; Secure") {
			w.Header().Add("Set-Cookie", cookie)
		}
		recordedAnswers()["0.22.2"]["session_list_limit_clamped"].answer(w)
	}
	on(t, c, Remote)
	remote.forget()
	on(t, c, Remote)
	if sent := remote.bytes(); !strings.Contains(sent, `__Host-hermes_session_at="at-secret-2="; __Host-hermes_session_rt=rt-secret; __Host-hermes_session_provider=basic`) {
		t.Errorf("after the refresh was sent: %s", sent)
	}
	if n := len(kept); n < 2 || kept[n-1].cookies[0].value.Reveal() != `"at-secret-2="` || kept[n-1].Password.Reveal() != testPassword {
		t.Errorf("kept %v", kept)
	}
	// The response to an old session does not end the new one.
	late := &http.Response{Header: http.Header{"Set-Cookie": {"__Host-hermes_session_at=\"\"; Max-Age=0; Path=/; Secure"}}, Request: &http.Request{Header: http.Header{"Cookie": {"__Host-hermes_session_at=old"}}}}
	c.account.takeCookies(late, c.remote)
	on(t, c, Remote)
	if d.tries() != 1 {
		t.Error("a late answer ended the session")
	}
}

// Cookies of an https address are not sent in the clear.
func TestSecureCookiesStayEncrypted(t *testing.T) {
	t.Parallel()
	d := newDashboard(t)
	local, remote := serve(t, d, overPlain), serve(t, d)
	c := client(t, Profile{Remote: remote.URL, Local: local.URL, Auth: AuthPassword})
	if err := c.Login(t.Context(), NewSecret(testPassword)); err != nil {
		t.Fatal(err)
	}
	if route := on(t, c, Remote); !strings.Contains(route.Reason, "https") {
		t.Errorf("the reason is %q", route.Reason)
	}
	local.gotNothingSecret(testPassword, "secret")
}

func TestCredentialsAreBound(t *testing.T) {
	p := Profile{Remote: "https://Gateway.test:443/x/", Auth: AuthPassword, Username: "a"}
	full := Credentials{Token: NewSecret("t"), Password: NewSecret("p"), cookies: []loginCookie{{name: "hermes_session_at", value: NewSecret("c")}}}.For(p)
	if full.Token.IsZero() || full.Account == "" || strings.Contains(full.Account, "gateway") {
		t.Fatalf("bound: %v", full)
	}
	for name, tc := range map[string]struct {
		change func(*Profile)
		kept   bool
	}{
		"the same":          {func(*Profile) {}, true},
		"written otherwise": {func(p *Profile) { p.Remote = "https://gateway.test/x" }, true},
		"local and name":    {func(p *Profile) { p.Local, p.Name, p.Session = "https://home.test", "n", "s" }, true},
		"remote":            {func(p *Profile) { p.Remote = "https://gateway.test/y" }, false},
		"port":              {func(p *Profile) { p.Remote = "https://gateway.test:444/x" }, false},
		"scheme":            {func(p *Profile) { p.Remote = "http://gateway.test:443/x" }, false},
		"user":              {func(p *Profile) { p.Username = "b" }, false},
	} {
		changed := p
		tc.change(&changed)
		got := full.For(changed)
		if kept := !got.Token.IsZero() && !got.Password.IsZero() && len(got.cookies) == 1; kept != tc.kept {
			t.Errorf("%s: kept %t", name, kept)
		}
		if !tc.kept && (!got.Token.IsZero() || !got.Password.IsZero() || len(got.cookies) > 0) {
			t.Errorf("%s: something is left: %v", name, got)
		}
	}
}

// A client for a changed profile sends nothing of the old account.
func TestChangedProfileSendsNothing(t *testing.T) {
	t.Parallel()
	other := serve(t, newHermes(t, "0.22.2"))
	old := Credentials{Token: NewSecret(testToken)}.For(Profile{Remote: "https://gateway.test", Auth: AuthBearer})
	c := client(t, Profile{Remote: other.URL}, func(creds *Credentials, _ *Options) { *creds = old })
	if _, err := c.Connect(t.Context()); !errors.Is(err, ErrSignIn) {
		t.Errorf("without a key: %v", err)
	}
	other.gotNothingSecret(testToken)
}

func TestTokenThatIsNone(t *testing.T) {
	t.Parallel()
	remote := serve(t, newHermes(t, "0.22.2"))
	for _, token := range []string{"", "a\r\nX-Evil: 1", "a b", "ключ", "\x00"} {
		c := client(t, Profile{Remote: remote.URL}, func(creds *Credentials, _ *Options) { creds.Token = NewSecret(token) })
		if _, err := c.Connect(t.Context()); !errors.Is(err, ErrSignIn) {
			t.Errorf("%q: %v", token, err)
		}
	}
	remote.gotNothingSecret("X-Evil")
	c := client(t, Profile{Remote: remote.URL}, func(creds *Credentials, _ *Options) { creds.Token = NewSecret("wrong") })
	if _, err := c.Connect(t.Context()); !errors.Is(err, ErrSignIn) {
		t.Errorf("a wrong key: %v", err)
	}
}
