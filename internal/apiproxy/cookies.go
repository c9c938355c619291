package apiproxy

import (
	"net/http"
	"strings"
	"time"
)

// Names of the cookies, the same as in Hermes' dashboard.
const (
	accessCookie   = "hermes_session_at"
	refreshCookie  = "hermes_session_rt"
	providerCookie = "hermes_session_provider"
)

// Lifetimes of the tokens.
const (
	accessLife  = 12 * time.Hour
	refreshLife = 30 * 24 * time.Hour
)

// provider is the only way to log in.
const provider = "basic"

// cookieName returns the name of a cookie. Over https it has the prefix that keeps other hosts and
// plain http from setting it.
func cookieName(name string, encrypted bool) string {
	if encrypted {
		return "__Host-" + name
	}
	return name
}

func (l *logins) encrypted(r *http.Request) bool {
	return strings.HasPrefix(l.o.Base(r), "https://")
}

// cookie returns the value of a request's cookie.
func (l *logins) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(cookieName(name, l.encrypted(r)))
	if err != nil {
		return ""
	}
	return c.Value
}

func (l *logins) setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	encrypted := l.encrypted(r)
	c := &http.Cookie{Name: cookieName(name, encrypted), Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true, Secure: encrypted, SameSite: http.SameSiteLaxMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// setCookies sets the cookies for a pair of tokens.
func (l *logins) setCookies(w http.ResponseWriter, r *http.Request, access, refresh string) {
	w.Header().Set("Cache-Control", "no-store")
	l.setCookie(w, r, accessCookie, access, accessLife)
	l.setCookie(w, r, refreshCookie, refresh, refreshLife)
	l.setCookie(w, r, providerCookie, provider, refreshLife)
}

// clearCookies removes the cookies.
func (l *logins) clearCookies(w http.ResponseWriter, r *http.Request) {
	for _, name := range []string{accessCookie, refreshCookie, providerCookie} {
		l.setCookie(w, r, name, "", 0)
	}
}
