package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/passkey"
)

// The admin UI is open to whoever has the cookie of a session, and to nobody because of an address
// or a header. A session begins with a one-time link (adminlink.go), with the admin token
// (adminlogin.go), or with a passkey (passkeylogin.go). The apparent origin of a request decides
// only which of them a page may offer, and whether there is a page at all.
//
// A browser sends the cookie to every program that serves a page at another port of this host, such
// as a preview that the agent offers. The API therefore also requires the secret of the page. The
// page gets it once, and keeps it where no other port can read it.

// ownerHeader is a header that the admin UI sends with each request. Its value is the secret of the
// page, once the page has one. A page of another origin needs a CORS preflight to send it, which
// the server never allows.
const ownerHeader = "X-Hermes-Mobile-Admin"

// adminSessionLife is the lifetime of a login to the admin UI, however much it is used.
const adminSessionLife = 12 * time.Hour

// Values of MOBILE_ADMIN.
const (
	adminOff   = "off"
	adminLocal = "local"
	adminOn    = "on"
)

// OwnerAccess tells the admin UI how to get in.
type OwnerAccess struct {
	// Access is "session" after a login, "link" if only a one-time link opens the page, "login" if
	// the admin token or a passkey does too, "passkey" if the admin token was right and a passkey
	// must follow, and "encrypt" if the page must be opened by https first.
	Access string `json:"access"`
	// Token and Passkey say how a login can begin.
	Token   bool `json:"token,omitempty"`
	Passkey bool `json:"passkey,omitempty"`
	// Page is the secret of the page. The server sends it once, at the beginning of a session.
	Page string `json:"page,omitempty"`
	// Plain says that the token and the content of the page cross the network unencrypted, as the
	// settings allow.
	Plain bool `json:"plain"`
}

// logins lets the owner into the admin UI.
type logins struct {
	cfg       *config.Config
	log       *slog.Logger
	addresses *addresses
	filter    *requestFilter
	sessions  *onetime.Tickets
	token     *adminToken
	tokens    *access.Tokens // of devices, which the admin token must not equal
	passkeys  *passkey.Keys
	audit     *auditLog
	failed    *failures
}

// adminWay is how a request reaches the admin UI.
type adminWay struct {
	here      bool // it seems to come from this machine, which proves nothing
	encrypted bool // the client used https, to us or to a trusted proxy
	plain     bool // it crosses a network unencrypted, as the owner chose with an http public address
}

// usable reports whether a secret may be sent this way.
func (w adminWay) usable() bool { return w.here || w.encrypted || w.plain }

// way returns how a request reaches the admin UI, and whether the settings allow that.
func (l *logins) way(r *http.Request) (w adminWay, ok bool) {
	w.here = access.FromHere(r)
	w.encrypted = strings.HasPrefix(l.addresses.base(r), "https://")
	w.plain = !w.here && !w.encrypted && strings.HasPrefix(l.cfg.PublicURL, "http://")
	return w, l.cfg.Admin == adminOn || l.cfg.Admin == adminLocal && w.here
}

// fromOwnPage reports whether a request comes from a page of this server or from the person at the
// browser, and not from another page in that browser.
func (l *logins) fromOwnPage(r *http.Request, document bool) bool {
	return onetime.FromPage(r, func(string) bool {
		// Behind a proxy that doesn't send the scheme, the page's origin is the public address of
		// the settings.
		return access.SameOrigin(r, l.addresses.base(r)) || !access.FromHere(r) && access.SameOrigin(r, l.cfg.PublicURL)
	}, document)
}

// access returns how far a request gets.
func (l *logins) access(r *http.Request) OwnerAccess {
	way, _ := l.way(r)
	a := OwnerAccess{Plain: way.plain}
	switch {
	case !way.usable():
		a.Access = "encrypt"
	case l.sessions.HoldsPage(r, l.cookie(way), r.Header.Get(ownerHeader)):
		a.Access = "session"
	default:
		a.Access = "link"
		if a.Token, a.Passkey = l.takesToken(way), l.takesPasskey(r, way); a.Token || a.Passkey {
			a.Access = "login"
		}
	}
	return a
}

// session returns how far a request gets. It tells a page that a one-time link has just opened its
// secret.
func (l *logins) session(w http.ResponseWriter, r *http.Request) {
	a := l.access(r)
	if way, _ := l.way(r); way.usable() && a.Access != "session" {
		if page, ok := l.sessions.Claim(r, l.cookie(way)); ok {
			a.Access, a.Page = "session", page
		}
	}
	answer(w, a, nil)
}

// admit begins the session of a browser whose user has proven to be the owner.
func (l *logins) admit(w http.ResponseWriter, way adminWay) OwnerAccess {
	session, page := l.sessions.Admit()
	l.setCookie(w, way, session)
	return OwnerAccess{Access: "session", Page: page, Plain: way.plain}
}

// required lets only requests with a session through.
func (l *logins) required(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.access(r).Access != "session" {
			refuse(w, http.StatusUnauthorized, "login", "Log in first: run hermes-mobile admin on the server's machine.")
			return
		}
		next.ServeHTTP(w, r.WithContext(audit.With(r.Context(), l.actor(r))))
	})
}

// actor returns who acts in the admin UI.
func (l *logins) actor(r *http.Request) audit.By {
	return audit.By{Actor: audit.ActorAdmin, Origin: l.addresses.clientText(r)}
}

// reads reports whether a request outside the page's API has the cookie of an owner's session.
func (l *logins) reads(r *http.Request) bool {
	way, ok := l.way(r)
	return ok && way.usable() && l.fromOwnPage(r, true) && l.sessions.Holds(r, l.cookie(way))
}

// insider reports whether a request may read what strangers may not: it has the metrics token, or
// the cookie of a login to the admin UI. Nothing else counts. The admin socket has its own routes
// to the same data.
func (l *logins) insider(r *http.Request) bool {
	token := l.cfg.MetricsToken.Reveal()
	return token != "" && sameSecret(bearer(r), token) || l.reads(r)
}

// logout ends the session of a request.
func (l *logins) logout(w http.ResponseWriter, r *http.Request) {
	way, _ := l.way(r)
	if cookie := l.cookie(way); l.sessions.Holds(r, cookie) {
		l.sessions.End(r, cookie)
		l.audit.recordAnyway(audit.With(r.Context(), l.actor(r)), "admin.logout", "", "")
	}
	l.setCookie(w, way, "")
	answer(w, nil, nil)
}

// loggedIn records a login and its method.
func (l *logins) loggedIn(r *http.Request, by string) {
	l.log.Info("logged in to the admin UI", "addr", l.addresses.clientText(r), "by", by)
	l.audit.recordAnyway(audit.With(r.Context(), l.actor(r)), "admin.login", "", by)
}

// rejected records a login that failed.
func (l *logins) rejected(r *http.Request, status int, by string) {
	addr := l.addresses.client(r)
	l.filter.note(addr, status, "login to the admin UI rejected: "+by)
	l.failed.note(r.Context(), "admin.login_failed", addr.String(), by)
}

// cookie returns the name of the session cookie. Over https it has the prefix that keeps other
// hosts and plain http from setting it. It contains the port, because all ports of a host share
// cookies.
func (l *logins) cookie(w adminWay) string {
	if w.encrypted {
		return "__Host-hm_admin_" + l.addresses.port()
	}
	return "hm_admin_" + l.addresses.port()
}

// setCookie gives a browser its session. An empty session removes the cookie.
func (l *logins) setCookie(w http.ResponseWriter, way adminWay, session string) {
	age := int(adminSessionLife / time.Second)
	if session == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{Name: l.cookie(way), Value: session, Path: "/", MaxAge: age, HttpOnly: true, Secure: way.encrypted,
		SameSite: http.SameSiteStrictMode})
}

// cookies returns the values of the session cookie, which identify the session of a request.
func (l *logins) cookies(r *http.Request) string {
	way, _ := l.way(r)
	var values []string
	for _, c := range r.CookiesNamed(l.cookie(way)) {
		values = append(values, c.Value)
	}
	return strings.Join(values, " ")
}
