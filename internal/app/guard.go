package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"hermes-mobile/internal/onetime"
)

// enterPath is the path of the links that open the page. The page's service worker never answers
// it.
const enterPath = "/app/enter"

// Guard checks every request that arrives over the loopback interface, which every program and web
// page on this machine can reach. It is safe for concurrent use.
//
// Guard requires the exact Host, so a foreign name that resolves to 127.0.0.1 fails (DNS
// rebinding). It requires the page's own Origin on every request that writes or upgrades. Every
// path needs the cookie of a session that a one-time link opened.
type Guard struct {
	origin  string // http://127.0.0.1:port
	hosts   []string
	cookie  string
	tickets *onetime.Tickets
}

func newGuard(port int, now func() time.Time) *Guard {
	return &Guard{origin: fmt.Sprintf("http://127.0.0.1:%d", port), hosts: []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		cookie:  fmt.Sprintf("hm_app_%d", port), // with the port, because all ports of a host share their cookies
		tickets: onetime.New(0, now)}
}

// link returns a new address that opens the page once.
func (g *Guard) link() string {
	return g.origin + enterPath + "?" + url.Values{onetime.KeyName: {g.tickets.Key()}}.Encode()
}

// pass returns the cookie of a new session, for a client in this process.
func (g *Guard) pass() *http.Cookie {
	return &http.Cookie{Name: g.cookie, Value: g.tickets.Open()}
}

// before returns a handler that checks each request and passes valid ones to next.
func (g *Guard) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header() // defaults; handlers may only make them stricter
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
			reject(w, http.StatusMisdirectedRequest, "This address doesn't belong to the app.")
		case !onetime.FromPage(r, own, document):
			reject(w, http.StatusForbidden, "Only the app's own page may send this request.")
		case r.URL.Path == enterPath:
			g.enter(w, r)
		case !g.tickets.Holds(r, g.cookie):
			reject(w, http.StatusUnauthorized, "This browser isn't logged in. Run hermes-mobile app, which opens the page. If the app is already running, run it again.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// enter exchanges the key of a link for a cookie. It redirects to the page, so that the key stays
// out of the browser's history.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	session, err := g.tickets.Exchange(r)
	switch {
	case errors.Is(err, onetime.ErrNotOpened):
		reject(w, http.StatusMethodNotAllowed, "Open this address in a browser.")
		return
	case err != nil && !g.tickets.Holds(r, g.cookie):
		reject(w, http.StatusForbidden, "This address was already used or is older than two minutes. Run hermes-mobile app again to open a new one.")
		return
	case err == nil:
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// reject answers a request with an error that its user can read.
func reject(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
