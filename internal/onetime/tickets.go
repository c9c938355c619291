// Package onetime makes links that open a page once, and keeps the browser sessions that they open.
//
// A program on the machine makes a link for its owner, who opens it in a browser. The browser
// exchanges the key in the link for a cookie and is redirected, so the key stays in no history. From
// then on the cookie is the proof: an address, a Host or a forwarding header grants nothing.
//
// A browser sends a cookie to every port of its host, so whoever is brought to open a page of another
// program there gives it away. What must not depend on that wants the secret of the page besides:
// the server tells it once, and the page keeps it where only pages of its own port can read it.
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
	// KeyLife is how long a link can be opened.
	KeyLife = 2 * time.Minute
	// KeyName is the parameter of a link that holds the key.
	KeyName = "key"

	// With one more key or session than this, the oldest one ends.
	maxKeys     = 16
	maxSessions = 32
)

// Errors of Exchange.
var (
	// ErrNotOpened: nobody opens the link. The request is not a GET, or a browser fetches ahead.
	ErrNotOpened = errors.New("the link is not being opened")
	// ErrSpent: the key was used already, is too old, or never existed.
	ErrSpent = errors.New("the link was used already or has expired")
)

// Tickets holds the keys of links and the sessions of browsers, in memory only: a restart ends all of them. It knows their
// hashes and not the secrets. Safe for concurrent use.
type Tickets struct {
	now  func() time.Time
	life time.Duration // of a session; 0: until the program ends

	mu       sync.Mutex
	keys     []ticket // the oldest first
	sessions []ticket
}

// ticket is the hash of a secret, so that comparing it takes the same time whatever is sent.
type ticket struct {
	sum  [sha256.Size]byte
	ends time.Time // zero: with the program

	claimed bool // of a session: the secret of its page was told
	page    [sha256.Size]byte
}

// New makes Tickets whose sessions last for a time, however much they are used; 0: until the program ends.
func New(session time.Duration, now func() time.Time) *Tickets {
	return &Tickets{now: now, life: session}
}

// Key makes the key of a link, good once and for KeyLife.
func (t *Tickets) Key() string { return t.issue(&t.keys, maxKeys, KeyLife) }

// Open begins a session and returns what its cookie holds.
func (t *Tickets) Open() string { return t.issue(&t.sessions, maxSessions, t.life) }

// Admit begins a session and tells the secret of its page, for a page that has proven by other means who asks.
func (t *Tickets) Admit() (session, page string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	session = t.add(&t.sessions, maxSessions, t.life)
	return session, t.sessions[len(t.sessions)-1].claim()
}

// Exchange uses up the key of a link that a browser opens, and begins a session. A request that is not a person's own, such as a
// prefetch, uses nothing up. The error is ErrNotOpened or ErrSpent.
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

// ahead reports whether a browser fetches a page that nobody has opened yet.
func ahead(r *http.Request) bool {
	return r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" || r.Header.Get("X-Moz") != ""
}

// Holds reports whether a request has the cookie of a session. A page of another port of this host may have set more cookies of
// the same name, so all of them are tried.
func (t *Tickets) Holds(r *http.Request, cookie string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session(r, cookie) != nil
}

// Claim makes the secret of a session's page, for the first request with its cookie that asks; ok is false for all others.
func (t *Tickets) Claim(r *http.Request, cookie string) (page string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.session(r, cookie)
	if s == nil || s.claimed {
		return "", false
	}
	return s.claim(), true
}

// claim makes the secret of a session's page.
func (k *ticket) claim() (page string) {
	page = rand.Text()
	k.claimed, k.page = true, sha256.Sum256([]byte(page))
	return page
}

// HoldsPage reports whether a request has the cookie of a session, and page is the secret of that session's page.
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

// EndOthers ends all sessions but that of a request's cookie. Without a request it ends all.
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

// session is the one whose cookie a request has; nil: none.
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

// find returns the place of a secret, -1 where there is none. It compares every ticket, whichever matches.
func (t *Tickets) find(list *[]ticket, secret string) int {
	sum := sha256.Sum256([]byte(secret))
	t.drop(list)
	at := -1
	for i := range *list {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare((*list)[i].sum[:], sum[:]), i, at)
	}
	return at
}

// drop takes out what has ended.
func (t *Tickets) drop(list *[]ticket) {
	now := t.now()
	*list = slices.DeleteFunc(*list, func(k ticket) bool { return !k.ends.IsZero() && !now.Before(k.ends) })
}
