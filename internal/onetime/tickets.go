// Package onetime creates links that open a page once, and the browser sessions that they open.
//
// A program on the machine creates a link for its owner, who opens it in a browser. The browser
// exchanges the key in the link for a cookie and is redirected, so the key stays in no history.
// From then on the cookie is the proof. An address, a Host or a forwarding header grants nothing.
//
// A browser sends a cookie to every port of its host, so a user who opens a page of another program
// there gives it away. Anything that must not depend on the cookie alone also requires the secret
// of the page. The server sends it once, and the page keeps it where only pages of its own port can
// read it.
package onetime

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// KeyLife is how long a link is valid.
	KeyLife = 2 * time.Minute
	// KeyName is the query parameter with the key.
	KeyName = "key"

	// One more key or session than this ends the oldest.
	maxKeys     = 16
	maxSessions = 32
)

// Errors of Exchange.
var (
	// ErrNotOpened reports that nobody opens the link: the request is not a GET, or a browser
	// prefetches it.
	ErrNotOpened = errors.New("nobody is opening the link")
	// ErrSpent reports that the key was already used, has expired, or never existed.
	ErrSpent = errors.New("the link was already used or has expired")
)

// Tickets has the keys of links and the sessions of browsers, in memory only: a restart ends them
// all. It stores hashes and not the secrets. It is safe for concurrent use.
type Tickets struct {
	now  func() time.Time
	life time.Duration // of a session; 0: until the program stops

	mu       sync.Mutex
	keys     []ticket // the oldest first
	sessions []ticket
}

// ticket is the hash of a secret, so a comparison takes the same time for any input.
type ticket struct {
	sum  [sha256.Size]byte
	ends time.Time // zero: when the program stops

	claimed bool // of a session: the secret of its page was sent
	page    [sha256.Size]byte
}

// New returns Tickets whose sessions last for life, however much they are used. With a life of 0
// they last until the program stops.
func New(session time.Duration, now func() time.Time) *Tickets {
	return &Tickets{now: now, life: session}
}

// Key returns the key of a new link, valid once and for KeyLife.
func (t *Tickets) Key() string { return t.issue(&t.keys, maxKeys, KeyLife) }

// Open begins a session and returns the value of its cookie.
func (t *Tickets) Open() string { return t.issue(&t.sessions, maxSessions, t.life) }

// Admit begins a session and returns the secret of its page too, for a user who was authenticated
// by other means.
func (t *Tickets) Admit() (session, page string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	session = t.add(&t.sessions, maxSessions, t.life)
	return session, t.sessions[len(t.sessions)-1].claim()
}

// Exchange uses up the key of a link that a browser opens, and begins a session. A request that
// isn't a person's, such as a prefetch, uses nothing up. The error is ErrNotOpened or ErrSpent.
func (t *Tickets) Exchange(r *http.Request) (session string, err error) {
	if r.Method != http.MethodGet || ahead(r) {
		return "", ErrNotOpened
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.find(&t.keys, r.URL.Query().Get(KeyName))
	if at < 0 {
		return "", ErrSpent
	}
	t.keys = slices.Delete(t.keys, at, at+1)
	return t.add(&t.sessions, maxSessions, t.life), nil
}

// ahead reports whether a browser prefetches a page.
func ahead(r *http.Request) bool {
	return r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" || r.Header.Get("X-Moz") != ""
}

// Holds reports whether a request has the cookie of a session. A page at another port of this host
// may have set more cookies of the same name, so Holds tries all of them.
func (t *Tickets) Holds(r *http.Request, cookie string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session(r, cookie) != nil
}

// Claim returns the secret of a session's page to the first request with its cookie. For all others
// ok is false.
func (t *Tickets) Claim(r *http.Request, cookie string) (page string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.session(r, cookie)
	if s == nil || s.claimed {
		return "", false
	}
	return s.claim(), true
}

// claim creates the secret of a session's page.
func (k *ticket) claim() (page string) {
	page = rand.Text()
	k.claimed, k.page = true, sha256.Sum256([]byte(page))
	return page
}

// HoldsPage reports whether a request has the cookie of a session, and page is the secret of that
// session's page.
func (t *Tickets) HoldsPage(r *http.Request, cookie, page string) bool {
	sum := sha256.Sum256([]byte(page))
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.session(r, cookie)
	return s != nil && s.claimed && subtle.ConstantTimeCompare(s.page[:], sum[:]) == 1
}

// End ends the session of a request's cookie.
func (t *Tickets) End(r *http.Request, cookie string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range r.CookiesNamed(cookie) {
		if at := t.find(&t.sessions, c.Value); at >= 0 {
			t.sessions = slices.Delete(t.sessions, at, at+1)
		}
	}
}

// EndOthers ends all sessions except that of a request's cookie. Without a request it ends all.
func (t *Tickets) EndOthers(r *http.Request, cookie string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept []ticket
	if r != nil {
		if s := t.session(r, cookie); s != nil {
			kept = append(kept, *s)
		}
	}
	t.sessions = kept
}

// session returns the session of a request's cookie, or nil.
func (t *Tickets) session(r *http.Request, cookie string) *ticket {
	for _, c := range r.CookiesNamed(cookie) {
		if at := t.find(&t.sessions, c.Value); at >= 0 {
			return &t.sessions[at]
		}
	}
	return nil
}

func (t *Tickets) issue(list *[]ticket, most int, life time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(list, most, life)
}

func (t *Tickets) add(list *[]ticket, most int, life time.Duration) string {
	secret := rand.Text()
	next := ticket{sum: sha256.Sum256([]byte(secret))}
	if life > 0 {
		next.ends = t.now().Add(life)
	}
	t.drop(list)
	if *list = append(*list, next); len(*list) > most {
		*list = (*list)[1:]
	}
	return secret
}

// find returns the index of a secret, or -1. It always compares every ticket.
func (t *Tickets) find(list *[]ticket, secret string) int {
	sum := sha256.Sum256([]byte(secret))
	t.drop(list)
	at := -1
	for i := range *list {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare((*list)[i].sum[:], sum[:]), i, at)
	}
	return at
}

// drop removes expired tickets.
func (t *Tickets) drop(list *[]ticket) {
	now := t.now()
	*list = slices.DeleteFunc(*list, func(k ticket) bool { return !k.ends.IsZero() && !now.Before(k.ends) })
}
