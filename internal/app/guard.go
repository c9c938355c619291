package app

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// enterPath takes the one-time key. The page's service worker never answers it.
	enterPath = "/app/enter"
	keyName   = "key"
	keyLife   = 2 * time.Minute
	// How many keys and sessions there may be; with one more the oldest ends.
	maxKeys     = 16
	maxSessions = 32
)

// Guard stands before everything that comes over the loopback interface, which every program and every web page on this machine can
// reach. It wants the exact Host (a name that somebody pointed at 127.0.0.1 is another one), the page's own Origin on everything that
// writes or upgrades, and on every path the cookie that the one-time key of an opened address was exchanged for. Safe for concurrent use.
type Guard struct {
	origin string // http://127.0.0.1:port
	hosts  []string
	cookie string
	now    func() time.Time

	mu       sync.Mutex
	keys     []ticket
	sessions []ticket
}

// ticket is the hash of a secret, so that comparing it takes the same time whatever is sent.
type ticket struct {
	sum  [sha256.Size]byte
	ends time.Time // zero: with the process
}

func newGuard(port int, now func() time.Time) *Guard {
	return &Guard{origin: fmt.Sprintf("http://127.0.0.1:%d", port), hosts: []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		cookie: fmt.Sprintf("hm_app_%d", port), // cookies are shared by all ports of a host
		now:    now}
}

// link makes an address that opens the page once.
func (g *Guard) link() string {
	return g.origin + enterPath + "?" + url.Values{keyName: {g.issue(&g.keys, maxKeys, keyLife)}}.Encode()
}

// pass makes a cookie for a client in this process.
func (g *Guard) pass() *http.Cookie {
	return &http.Cookie{Name: g.cookie, Value: g.issue(&g.sessions, maxSessions, 0)}
}

func (g *Guard) issue(list *[]ticket, most int, life time.Duration) string {
	secret := rand.Text() + rand.Text()
	t := ticket{sum: sha256.Sum256([]byte(secret))}
	g.mu.Lock()
	defer g.mu.Unlock()
	if life > 0 {
		t.ends = g.now().Add(life)
	}
	if *list = append(*list, t); len(*list) > most {
		*list = (*list)[1:]
	}
	return secret
}

// find looks for a secret, and takes it out where it is used up by that. All are compared, whichever it is.
func (g *Guard) find(list *[]ticket, secret string, use bool) bool {
	sum := sha256.Sum256([]byte(secret))
	g.mu.Lock()
	defer g.mu.Unlock()
	found, kept := 0, (*list)[:0]
	for _, t := range *list {
		same := subtle.ConstantTimeCompare(t.sum[:], sum[:])
		if !t.ends.IsZero() && !g.now().Before(t.ends) {
			continue
		}
		found |= same
		if same == 0 || !use {
			kept = append(kept, t)
		}
	}
	*list = kept
	return found == 1
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
		switch {
		case r.Host != g.hosts[0] && r.Host != g.hosts[1]:
			g.turnAway(w, http.StatusMisdirectedRequest, "This address is not the app's.")
		case !g.ownPage(r):
			g.turnAway(w, http.StatusForbidden, "Only the app's own page may ask for this.")
		case r.URL.Path == enterPath:
			g.enter(w, r)
		case !g.known(r):
			g.turnAway(w, http.StatusUnauthorized, "This page was opened by nobody who may. Start hermes-mobile app, which opens it; where it runs already, start it once more.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ownPage: what writes or upgrades comes from the page itself, and nothing comes from within a page of somebody else. Pages of other
// ports are of the same site for a browser, so the cookie alone says nothing of it.
func (g *Guard) ownPage(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+r.Host {
		return false
	}
	if len(origins) == 0 && (r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "") {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && (r.URL.Path == "/" || r.URL.Path == enterPath)
}

func (g *Guard) known(r *http.Request) bool {
	for _, c := range r.CookiesNamed(g.cookie) { // another port's page may have set one for another path
		if g.find(&g.sessions, c.Value, false) {
			return true
		}
	}
	return false
}

// enter exchanges the key for a cookie, and leads on to the page so that the key stands in no history.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Header.Get("Sec-Purpose") != "" { // a browser that fetches ahead would use it up
		g.turnAway(w, http.StatusMethodNotAllowed, "This address is for a browser to open.")
		return
	}
	if !g.find(&g.keys, r.URL.Query().Get(keyName), true) {
		if g.known(r) {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		g.turnAway(w, http.StatusForbidden, "This address was used already, or is older than two minutes. Start hermes-mobile app once more, which opens a new one.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.issue(&g.sessions, maxSessions, 0), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (g *Guard) turnAway(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, words)
}
