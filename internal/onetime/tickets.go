// Package onetime makes links that open a page once, and keeps the browser sessions that they open.
//
// A program on the machine makes a link for its owner, who opens it in a browser. The browser
// exchanges the key in the link for a cookie and is redirected, so the key stays in no history. From
// then on the cookie is the only proof: an address, a Host or a forwarding header grants nothing.
package onetime

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
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
}

// New makes Tickets whose sessions last for a time, however much they are used; 0: until the program ends.
func New(session time.Duration, now func() time.Time) *Tickets {
	return &Tickets{now: now, life: session}
}

// Key makes the key of a link, good once and for KeyLife.
func (t *Tickets) Key() string { return t.issue(&t.keys, maxKeys, KeyLife) }

// Open begins a session and returns what its cookie holds.
func (t *Tickets) Open() string { return t.issue(&t.sessions, maxSessions, t.life) }

// Exchange uses up the key of a link that a browser opens, and begins a session. A request that is not a person's own, such as a
// prefetch, uses nothing up. The error is ErrNotOpened or ErrSpent.
func (t *Tickets) Exchange(r *http.Request) (session string, err error) {
	if r.Method != http.MethodGet || ahead(r) {
		return "", ErrNotOpened
	}
	if !t.find(&t.keys, r.URL.Query().Get(KeyName), true) {
		return "", ErrSpent
	}
	return t.Open(), nil
}

// ahead reports whether a browser fetches a page that nobody has opened yet.
func ahead(r *http.Request) bool {
	return r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" || r.Header.Get("X-Moz") != ""
}

// Holds reports whether a request has the cookie of a session. A page of another port of this host may have set more cookies of
// the same name, so all of them are tried.
func (t *Tickets) Holds(r *http.Request, cookie string) bool {
	for _, c := range r.CookiesNamed(cookie) {
		if t.find(&t.sessions, c.Value, false) {
			return true
		}
	}
	return false
}

// End ends the session of a request's cookie.
func (t *Tickets) End(r *http.Request, cookie string) {
	for _, c := range r.CookiesNamed(cookie) {
		t.find(&t.sessions, c.Value, true)
	}
}

func (t *Tickets) issue(list *[]ticket, most int, life time.Duration) string {
	secret := rand.Text()
	next := ticket{sum: sha256.Sum256([]byte(secret))}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(list)
	if life > 0 {
		next.ends = t.now().Add(life)
	}
	if *list = append(*list, next); len(*list) > most {
		*list = (*list)[1:]
	}
	return secret
}

// find looks for a secret, and takes it out if take is set. It compares every ticket, whichever matches.
func (t *Tickets) find(list *[]ticket, secret string, take bool) bool {
	sum := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(list)
	at := -1
	for i := range *list {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare((*list)[i].sum[:], sum[:]), i, at)
	}
	if at >= 0 && take {
		*list = append((*list)[:at:at], (*list)[at+1:]...)
	}
	return at >= 0
}

// drop takes out what has ended.
func (t *Tickets) drop(list *[]ticket) {
	now := t.now()
	kept := (*list)[:0]
	for _, k := range *list {
		if k.ends.IsZero() || now.Before(k.ends) {
			kept = append(kept, k)
		}
	}
	*list = kept
}
