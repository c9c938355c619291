package server

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// ownerSessionLife is how long a login holds, however much the page is used.
	ownerSessionLife = 12 * time.Hour
	// maxOwnerSessions is how many logins hold at once; with one more the oldest ends.
	maxOwnerSessions = 32
)

// ownerSessions are the logins to the owner's page from other machines. They are in memory only: a restart ends them, and with
// them what an old token opened. Safe for concurrent use.
type ownerSessions struct {
	now func() time.Time

	mu   sync.Mutex
	ends map[[sha256.Size]byte]time.Time // by the hash of what the cookie holds
}

func newOwnerSessions(now func() time.Time) *ownerSessions {
	return &ownerSessions{now: now, ends: map[[sha256.Size]byte]time.Time{}}
}

// open begins a session and returns what its cookie holds.
func (o *ownerSessions) open() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for len(o.ends) > 0 {
		var first [sha256.Size]byte
		for key, end := range o.ends {
			if have, any := o.ends[first]; !any || end.Before(have) {
				first = key
			}
		}
		if now.Before(o.ends[first]) && len(o.ends) < maxOwnerSessions {
			break
		}
		delete(o.ends, first)
	}
	secret := rand.Text()
	o.ends[sha256.Sum256([]byte(secret))] = now.Add(ownerSessionLife)
	return secret
}

// holds reports whether a cookie is that of a session.
func (o *ownerSessions) holds(secret string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	end, ok := o.ends[sha256.Sum256([]byte(secret))]
	return ok && o.now().Before(end)
}

func (o *ownerSessions) end(secret string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ends, sha256.Sum256([]byte(secret)))
}

// ownerCookie names the cookie. Over https it has the prefix by which a browser keeps other hosts and plain http from setting it.
func ownerCookie(encrypted bool) string {
	if encrypted {
		return "__Host-hm_admin"
	}
	return "hm_admin"
}

// setOwnerCookie hands a session out, or takes it back where secret is empty.
func setOwnerCookie(w http.ResponseWriter, secret string, encrypted bool) {
	age := int(ownerSessionLife / time.Second)
	if secret == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{Name: ownerCookie(encrypted), Value: secret, Path: "/", MaxAge: age, HttpOnly: true, Secure: encrypted,
		SameSite: http.SameSiteStrictMode})
}
