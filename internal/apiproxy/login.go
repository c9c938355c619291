package apiproxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"time"

	"hermes-mobile/internal/store"
	"hermes-mobile/internal/strangers"
)

const (
	// refreshGrace is how long a refresh token stays valid after its successor was used: concurrent
	// requests all send the old one.
	refreshGrace = time.Minute
	// maxLogins is how many logins of a user are valid at once. One more ends the oldest.
	maxLogins = 50
)

// logins are the logins of users, with cookies or with a key: they find out who makes a request.
type logins struct {
	o        *Options
	guesses  *guesses
	failures *failures
	live     *live // requests of a login end with it
}

// caller is the user who makes a request.
type caller struct {
	id, name string
	login    string
	until    time.Time // of the access token, or the key
	key      string    // hash of the key, empty with cookies
}

func newToken() (token, hash string) {
	var b [32]byte
	rand.Read(b[:])
	token = base64.RawURLEncoding.EncodeToString(b[:])
	return token, hashToken(token)
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// open begins a login. It replaces the login that the request came with.
func (l *logins) open(w http.ResponseWriter, r *http.Request, user *store.APIUser) error {
	before, err := l.loginOf(r)
	if err != nil {
		return err
	}
	logins, err := l.o.Store.API().Logins(r.Context(), user.ID)
	if err != nil {
		return err
	}
	over := logins[min(len(logins), maxLogins-1):]
	if before != "" {
		over = append(over, before)
	}
	now := l.o.Now()
	err = l.issue(w, r, caller{id: user.ID, login: rand.Text()}, "", func(tx *store.Tx) error {
		for _, login := range over {
			if err := tx.API().EndLogin(login); err != nil {
				return err
			}
		}
		return tx.API().SeenUser(user.ID, now)
	})
	for _, login := range over {
		l.live.end("", login)
	}
	return err
}

// issue stores a pair of tokens together with other changes, and sets the cookies.
func (l *logins) issue(w http.ResponseWriter, r *http.Request, c caller, parent string, also func(*store.Tx) error) error {
	access, accessHash := newToken()
	refresh, refreshHash := newToken()
	now := l.o.Now()
	err := l.o.Store.Do(func(tx *store.Tx) error {
		if err := also(tx); err != nil {
			return err
		}
		k := store.APIToken{Hash: accessHash, Login: c.login, User: c.id, Until: now.Add(accessLife), Parent: parent}
		if err := tx.API().AddToken(k, now); err != nil {
			return err
		}
		k.Hash, k.Refresh, k.Until = refreshHash, true, now.Add(refreshLife)
		return tx.API().AddToken(k, now)
	})
	if err == nil {
		l.setCookies(w, r, access, refresh)
	}
	return err
}

// token looks up the token in a cookie. It returns nil if the cookie is missing or the token
// unknown.
func (l *logins) token(ctx context.Context, r *http.Request, name string) (*store.APIToken, error) {
	value := l.cookie(r, name)
	if value == "" {
		return nil, nil
	}
	return l.o.Store.API().Token(ctx, hashToken(value))
}

// loginOf returns the login that a request's cookies belong to, or an empty string.
func (l *logins) loginOf(r *http.Request) (string, error) {
	for _, name := range []string{accessCookie, refreshCookie} {
		if k, err := l.token(r.Context(), r, name); err != nil || k != nil {
			if err != nil {
				return "", err
			}
			return k.Login, nil
		}
	}
	return "", nil
}

// errNobody reports that a request has no valid login.
var errNobody = errors.New("nobody is logged in")

// identify returns the user who makes a request. A refresh token alone is enough: then the answer
// sets new cookies.
func (l *logins) identify(w http.ResponseWriter, r *http.Request) (caller, error) {
	now := l.o.Now()
	k, err := l.token(r.Context(), r, accessCookie)
	if err != nil {
		return caller{}, err
	}
	if k != nil && !k.Refresh && now.Before(k.Until) {
		return caller{id: k.User, name: k.Name, login: k.Login, until: k.Until}, l.spend(k, now)
	}
	if k, err = l.token(r.Context(), r, refreshCookie); err != nil {
		return caller{}, err
	}
	if k == nil || !k.Refresh || !now.Before(k.Until) {
		return caller{}, errNobody
	}
	if !k.SpentAt.IsZero() && now.Sub(k.SpentAt) > refreshGrace {
		// The client has used a newer one, so somebody else has this token or the newer one.
		l.o.Metrics.FrontLogins.WithLabelValues("reused").Inc()
		l.o.Log.Warn("login ended, its old refresh token was used again", "user", k.Name, "addr", l.o.Client(r))
		err := l.endLogin(k.Login)
		return caller{}, errors.Join(errNobody, err)
	}
	if err := l.spend(k, now); err != nil {
		return caller{}, err
	}
	c := caller{id: k.User, name: k.Name, login: k.Login, until: now.Add(accessLife)}
	return c, l.issue(w, r, c, k.Hash, func(*store.Tx) error { return nil })
}

// spend records the first use of a token, which makes its predecessor obsolete.
func (l *logins) spend(k *store.APIToken, now time.Time) error {
	if k.Parent == "" {
		return nil
	}
	return l.o.Store.Do(func(tx *store.Tx) error { return tx.API().SpendToken(k.Parent, now) })
}

// holds reports whether a login is still valid, or a key still exists.
func (l *logins) holds(ctx context.Context, c caller) bool {
	if c.key != "" {
		k, err := l.o.Store.API().Key(ctx, c.key)
		return err == nil && k != nil
	}
	logins, err := l.o.Store.API().Logins(ctx, c.id)
	return err == nil && slices.Contains(logins, c.login)
}

func (l *logins) endLogin(login string) error {
	err := l.o.Store.Do(func(tx *store.Tx) error { return tx.API().EndLogin(login) })
	l.live.end("", login)
	return err
}

// nobody answers a request without a valid login or key.
func (l *logins) nobody(w http.ResponseWriter, r *http.Request) {
	if _, is := bearer(r); is {
		noKey(w, "This API key was removed.")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	out := map[string]string{"error": "unauthenticated", "detail": "Unauthorized", "reason": "no_cookie", "login_url": loginPath}
	if l.cookie(r, accessCookie) != "" || l.cookie(r, refreshCookie) != "" {
		out["error"], out["reason"] = "session_expired", "invalid_or_expired_session"
		l.clearCookies(w, r)
	}
	writeJSON(w, http.StatusUnauthorized, out)
}

// known returns the user who makes a request, or answers the request.
func (l *logins) known(w http.ResponseWriter, r *http.Request) (caller, bool) {
	if token, is := bearer(r); is {
		return l.holder(w, r, token)
	}
	c, err := l.identify(w, r)
	switch {
	case err == nil:
		strangers.Admit(r.Context())
		return c, true
	case errors.Is(err, errNobody):
		l.nobody(w, r)
	default:
		l.o.Log.Error("login not looked up", "err", err)
		refuse(w, http.StatusServiceUnavailable, "server_error", "login_unavailable", "The login can't be checked right now.")
	}
	return c, false
}
