package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"hermes-mobile/internal/onetime"
)

// enterPath takes the key of a link. The page's service worker never answers it.
const enterPath = "/app/enter"

// Guard stands before everything that comes over the loopback interface, which every program and every web page on this machine can
// reach. It wants the exact Host (a name that somebody pointed at 127.0.0.1 is another one), the page's own Origin on everything that
// writes or upgrades, and on every path the cookie of a session that a one-time link has opened. Safe for concurrent use.
type Guard struct {
	origin  string // http://127.0.0.1:port
	hosts   []string
	cookie  string
	tickets *onetime.Tickets
}

func newGuard(port int, now func() time.Time) *Guard {
	return &Guard{origin: fmt.Sprintf("http://127.0.0.1:%d", port), hosts: []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		cookie:  fmt.Sprintf("hm_app_%d", port), // cookies are shared by all ports of a host
		tickets: onetime.New(0, now)}
}

// link makes an address that opens the page once.
func (g *Guard) link() string {
	return g.origin + enterPath + "?" + url.Values{onetime.KeyName: {g.tickets.Key()}}.Encode()
}

// pass makes a cookie for a client in this process.
func (g *Guard) pass() *http.Cookie {
	return &http.Cookie{Name: g.cookie, Value: g.tickets.Open()}
}

// before guards a handler.
func (g *Guard) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header() // what the handler sets is stricter or the same
		h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		document := r.URL.Path == "/" || r.URL.Path == enterPath
		own := func(origin string) bool { return origin == "http://"+r.Host }
		switch {
		case r.Host != g.hosts[0] && r.Host != g.hosts[1]:
			g.turnAway(w, http.StatusMisdirectedRequest, "This address is not the app's.")
		case !onetime.FromPage(r, own, document):
			g.turnAway(w, http.StatusForbidden, "Only the app's own page may ask for this.")
		case r.URL.Path == enterPath:
			g.enter(w, r)
		case !g.tickets.Holds(r, g.cookie):
			g.turnAway(w, http.StatusUnauthorized, "This page was opened by nobody who may. Start hermes-mobile app, which opens it; where it runs already, start it once more.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// enter exchanges the key for a cookie, and leads on to the page so that the key stands in no history.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	session, err := g.tickets.Exchange(r)
	switch {
	case errors.Is(err, onetime.ErrNotOpened):
		g.turnAway(w, http.StatusMethodNotAllowed, "This address is for a browser to open.")
		return
	case err != nil && !g.tickets.Holds(r, g.cookie):
		g.turnAway(w, http.StatusForbidden, "This address was used already, or is older than two minutes. Start hermes-mobile app once more, which opens a new one.")
		return
	case err == nil:
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (g *Guard) turnAway(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, words)
}
