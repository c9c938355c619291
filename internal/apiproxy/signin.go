package apiproxy

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxLogin is the maximum size of a login request in bytes.
const maxLogin = 16 << 10

// loginPath is the path of the login page, the same as in Hermes' dashboard.
const loginPath = "/login"

// problem is one item of a 422. Unlike the dashboard's, it doesn't repeat the input.
type problem struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// credentials are the fields of a login request.
type credentials struct{ provider, username, password, next string }

// readLogin reads a login request, and returns what is wrong with it.
func readLogin(body []byte) (c credentials, bad []problem) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return c, []problem{{"model_attributes_type", []string{"body"}, "Input should be a valid dictionary or object to extract fields from"}}
	}
	for _, field := range []struct {
		name     string
		to       *string
		required bool
	}{{"provider", &c.provider, true}, {"username", &c.username, true}, {"password", &c.password, true}, {"next", &c.next, false}} {
		raw, there := fields[field.name]
		switch {
		case !there && field.required:
			bad = append(bad, problem{"missing", []string{"body", field.name}, "Field required"})
		case !there:
		case len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, field.to) != nil:
			bad = append(bad, problem{"string_type", []string{"body", field.name}, "Input should be a valid string"})
		}
	}
	return c, bad
}

// detail answers in the dashboard's format.
func detail(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, map[string]any{"detail": what})
}

// passwordLogin serves POST /auth/password-login.
func (l *logins) passwordLogin(w http.ResponseWriter, r *http.Request) {
	if !l.sameSite(r) {
		detail(w, http.StatusForbidden, "Pages of another origin may not log in here")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogin))
	if err != nil {
		detail(w, http.StatusRequestEntityTooLarge, "The request is too large")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		body = nil // the dashboard rejects forms the same way
	}
	c, bad := readLogin(body)
	if len(bad) > 0 {
		detail(w, http.StatusUnprocessableEntity, bad)
		return
	}
	if c.provider != provider {
		detail(w, http.StatusNotFound, "Unknown provider")
		return
	}
	if no := l.signIn(w, r, c.username, c.password); no != nil {
		no.head(w)
		detail(w, no.status, no.detail)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"ok": true, "next": localPath(c.next)})
}

// rejection is the reason for a failed login.
type rejection struct {
	status int
	detail string // in the dashboard's words
	wait   time.Duration
}

func (no *rejection) head(w http.ResponseWriter) {
	if no.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(no.wait.Seconds()))))
	}
}

// busyWait is the Retry-After when the queue of logins is full.
const busyWait = 5 * time.Second

// signIn checks a name and a password, and begins a login.
func (l *logins) signIn(w http.ResponseWriter, r *http.Request, name, password string) *rejection {
	outcome := l.o.Metrics.FrontLogins.WithLabelValues
	addr := l.o.Client(r)
	attempt, wait := l.guesses.begin(addr, normal(name))
	if wait > 0 {
		outcome("throttled").Inc()
		l.failures.login(addr)
		return &rejection{http.StatusTooManyRequests, "Too many login attempts. Try again shortly.", wait}
	}
	user, err := l.o.Users.check(r.Context(), name, password)
	switch {
	case errors.Is(err, errBusy):
		attempt.canceled()
		outcome("busy").Inc()
		return &rejection{http.StatusTooManyRequests, "Too many logins at once. Try again shortly.", busyWait}
	case err != nil:
		attempt.canceled()
		if r.Context().Err() == nil { // otherwise the client is gone
			l.o.Log.Error("login not checked", "err", err)
		}
		return &rejection{status: http.StatusServiceUnavailable, detail: "The login can't be checked right now"}
	case user == nil:
		attempt.wrong()
		outcome("wrong").Inc()
		l.failures.login(addr)
		l.o.Log.Warn("login rejected", "addr", addr)
		return &rejection{status: http.StatusUnauthorized, detail: "Invalid credentials"}
	}
	attempt.right()
	if err := l.open(w, r, user); err != nil {
		l.o.Log.Error("login not stored", "err", err)
		return &rejection{status: http.StatusServiceUnavailable, detail: "The login can't be stored right now"}
	}
	outcome("ok").Inc()
	return nil
}

// localPath returns the path to open after the login. It never leads to another server.
func localPath(next string) string {
	odd := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' } // browsers drop some, and none belongs in a header
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, odd) {
		return "/"
	}
	return next
}

// logout serves POST /auth/logout. Unlike the dashboard, it ends the login here too, and not only
// in the browser.
func (l *logins) logout(w http.ResponseWriter, r *http.Request) {
	if !l.sameSite(r) {
		detail(w, http.StatusForbidden, "Pages of another origin may not log out here")
		return
	}
	login, err := l.loginOf(r)
	if err == nil && login != "" {
		err = l.endLogin(login)
	}
	if err != nil {
		l.o.Log.Error("login not ended", "err", err)
		detail(w, http.StatusServiceUnavailable, "The login can't be ended right now")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	l.clearCookies(w, r)
	w.Header().Set("Location", loginPath)
	w.WriteHeader(http.StatusFound)
}

// me serves GET /api/auth/me.
func (l *logins) me(w http.ResponseWriter, r *http.Request) {
	c, ok := l.known(w, r)
	if !ok {
		return
	}
	var expires int64
	if !c.until.IsZero() {
		expires = c.until.Unix()
	}
	writeJSON(w, http.StatusOK, struct {
		User     string `json:"user_id"`
		Email    string `json:"email"`
		Name     string `json:"display_name"`
		Org      string `json:"org_id"`
		Provider string `json:"provider"`
		Expires  int64  `json:"expires_at"` // 0: never
	}{c.name, "", c.name, "", provider, expires})
}

// providers serves GET /api/auth/providers.
func providers(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"providers": []any{map[string]any{"name": provider, "display_name": "Username & Password", "supports_password": true}}})
}

// sameSite reports whether a request may make changes: it comes from no page, or from a page of
// this server.
func (l *logins) sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	return len(r.Header.Values("Origin")) == 0 || l.o.Own(r)
}
