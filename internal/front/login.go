package front

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/store"
	"hermes-mobile/internal/strangers"
)

const (
	// refreshGrace is how long a refresh token is taken once more when one that it gave was used: requests at the same time
	// all come with the old one.
	refreshGrace = time.Minute
	// maxLogins is how many logins of a user hold at once; with one more the oldest ends.
	maxLogins = 50
	maxLogin  = 16 << 10 // bytes of a login's body
)

// caller is who makes a request.
type caller struct {
	id, name string
	login    string
	until    time.Time // of the access token
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

// problem is one item of a 422. Unlike the dashboard's it does not repeat what was sent.
type problem struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// credentials are the body of a login.
type credentials struct{ provider, username, password, next string }

// readLogin reads a body, and returns what is wrong with it.
func readLogin(body []byte) (c credentials, bad []problem) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return c, []problem{{"model_attributes_type", []string{"body"}, "Input should be a valid dictionary or object to extract fields from"}}
	}
	for _, field := range []struct {
		name     string
		to       *string
		required bool
	}{{"provider", &c.provider, true}, {"username", &c.username, true}, {"password", &c.password, true}, {"next", &c.next, false}} {
		raw, there := fields[field.name]
		switch {
		case !there && field.required:
			bad = append(bad, problem{"missing", []string{"body", field.name}, "Field required"})
		case !there:
		case len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, field.to) != nil:
			bad = append(bad, problem{"string_type", []string{"body", field.name}, "Input should be a valid string"})
		}
	}
	return c, bad
}

// detail answers as the dashboard does.
func detail(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, map[string]any{"detail": what})
}

// passwordLogin is POST /auth/password-login.
func (f *Front) passwordLogin(w http.ResponseWriter, r *http.Request) {
	if !f.sameSite(r) {
		detail(w, http.StatusForbidden, "A page of another origin may not log in here")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogin))
	if err != nil {
		detail(w, http.StatusRequestEntityTooLarge, "The request is too large")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		body = nil // as a form is to the dashboard
	}
	c, bad := readLogin(body)
	if len(bad) > 0 {
		detail(w, http.StatusUnprocessableEntity, bad)
		return
	}
	if c.provider != provider {
		detail(w, http.StatusNotFound, "Unknown provider")
		return
	}
	if wait := f.tries.begin(f.o.Client(r), normal(c.username)); wait > 0 {
		f.o.Metrics.FrontLogins.WithLabelValues("throttled").Inc()
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		detail(w, http.StatusTooManyRequests, "Too many login attempts. Try again shortly.")
		return
	}
	user, err := f.o.Users.check(r.Context(), c.username, c.password)
	switch {
	case err != nil:
		f.o.Log.Error("a login could not be checked", "error", err)
		detail(w, http.StatusServiceUnavailable, "The login cannot be checked now")
		return
	case user == nil:
		f.o.Metrics.FrontLogins.WithLabelValues("wrong").Inc()
		f.o.Log.Info("a login was refused", "address", f.o.Client(r))
		detail(w, http.StatusUnauthorized, "Invalid credentials")
		return
	}
	f.tries.right(normal(c.username))
	if err := f.open(w, r, user); err != nil {
		f.o.Log.Error("a login could not be stored", "error", err)
		detail(w, http.StatusServiceUnavailable, "The login cannot be stored now")
		return
	}
	f.o.Metrics.FrontLogins.WithLabelValues("ok").Inc()
	writeJSON(w, http.StatusOK, map[string]any{"ok": true, "next": localPath(c.next)})
}

// localPath is where a page goes after the login: nowhere off this server.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// open begins a login, in the place of one that the request came with.
func (f *Front) open(w http.ResponseWriter, r *http.Request, user *store.FrontUser) error {
	before, err := f.loginOf(r)
	if err != nil {
		return err
	}
	logins, err := f.o.Store.FrontLogins(r.Context(), user.ID)
	if err != nil {
		return err
	}
	over := logins[min(len(logins), maxLogins-1):]
	if before != "" {
		over = append(over, before)
	}
	now := f.o.Now()
	err = f.issue(w, r, caller{id: user.ID, login: rand.Text()}, "", func(tx *store.Tx) error {
		for _, login := range over {
			if err := tx.EndFrontLogin(login); err != nil {
				return err
			}
		}
		return tx.SeenFrontUser(user.ID, now)
	})
	for _, login := range over {
		f.live.end("", login)
	}
	return err
}

// issue stores a pair of tokens, along with what else is done, and hands it out.
func (f *Front) issue(w http.ResponseWriter, r *http.Request, c caller, parent string, also func(*store.Tx) error) error {
	access, accessHash := newToken()
	refresh, refreshHash := newToken()
	now := f.o.Now()
	err := f.o.Store.Do(func(tx *store.Tx) error {
		if err := also(tx); err != nil {
			return err
		}
		k := store.FrontToken{Hash: accessHash, Login: c.login, User: c.id, Until: now.Add(accessLife), Parent: parent}
		if err := tx.AddFrontToken(k, now); err != nil {
			return err
		}
		k.Hash, k.Refresh, k.Until = refreshHash, true, now.Add(refreshLife)
		return tx.AddFrontToken(k, now)
	})
	if err == nil {
		f.setCookies(w, r, access, refresh)
	}
	return err
}

// token looks up what a cookie holds, nil where it is nothing of ours.
func (f *Front) token(ctx context.Context, r *http.Request, name string) (*store.FrontToken, error) {
	value := f.cookie(r, name)
	if value == "" {
		return nil, nil
	}
	return f.o.Store.FrontToken(ctx, hashToken(value))
}

// loginOf returns the login that the cookies of a request belong to, empty where there is none.
func (f *Front) loginOf(r *http.Request) (string, error) {
	for _, name := range []string{accessCookie, refreshCookie} {
		if k, err := f.token(r.Context(), r, name); err != nil || k != nil {
			if err != nil {
				return "", err
			}
			return k.Login, nil
		}
	}
	return "", nil
}

// errNobody: the request has no login that holds.
var errNobody = errors.New("nobody is logged in")

// identify returns who makes a request. A refresh token alone is good as well: then the answer brings new cookies.
func (f *Front) identify(w http.ResponseWriter, r *http.Request) (caller, error) {
	now := f.o.Now()
	k, err := f.token(r.Context(), r, accessCookie)
	if err != nil {
		return caller{}, err
	}
	if k != nil && !k.Refresh && now.Before(k.Until) {
		return caller{k.User, k.Name, k.Login, k.Until}, f.spend(k, now)
	}
	if k, err = f.token(r.Context(), r, refreshCookie); err != nil {
		return caller{}, err
	}
	if k == nil || !k.Refresh || !now.Before(k.Until) {
		return caller{}, errNobody
	}
	if !k.SpentAt.IsZero() && now.Sub(k.SpentAt) > refreshGrace {
		// The client has a newer one and used it: somebody else has this one, or has the newer.
		f.o.Metrics.FrontLogins.WithLabelValues("reused").Inc()
		f.o.Log.Warn("a login was ended, because an old refresh token of it came again", "user", k.Name, "address", f.o.Client(r))
		err := f.endLogin(k.Login)
		return caller{}, errors.Join(errNobody, err)
	}
	if err := f.spend(k, now); err != nil {
		return caller{}, err
	}
	c := caller{k.User, k.Name, k.Login, now.Add(accessLife)}
	return c, f.issue(w, r, c, k.Hash, func(*store.Tx) error { return nil })
}

// spend notes the first use of a token, after which the one that gave it is not needed any more.
func (f *Front) spend(k *store.FrontToken, now time.Time) error {
	if k.Parent == "" {
		return nil
	}
	return f.o.Store.Do(func(tx *store.Tx) error { return tx.SpendFrontToken(k.Parent, now) })
}

// holds reports whether a login has not ended.
func (f *Front) holds(ctx context.Context, c caller) bool {
	logins, err := f.o.Store.FrontLogins(ctx, c.id)
	return err == nil && slices.Contains(logins, c.login)
}

func (f *Front) endLogin(login string) error {
	err := f.o.Store.Do(func(tx *store.Tx) error { return tx.EndFrontLogin(login) })
	f.live.end("", login)
	return err
}

// loginPath is where the dashboard has its page.
const loginPath = "/login"

// nobody answers a request without a login that holds.
func (f *Front) nobody(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	out := map[string]string{"error": "unauthenticated", "detail": "Unauthorized", "reason": "no_cookie", "login_url": loginPath}
	if f.cookie(r, accessCookie) != "" || f.cookie(r, refreshCookie) != "" {
		out["error"], out["reason"] = "session_expired", "invalid_or_expired_session"
		f.clearCookies(w, r)
	}
	writeJSON(w, http.StatusUnauthorized, out)
}

// known returns who makes a request, or answers it.
func (f *Front) known(w http.ResponseWriter, r *http.Request) (caller, bool) {
	c, err := f.identify(w, r)
	switch {
	case err == nil:
		strangers.Admit(r.Context())
		return c, true
	case errors.Is(err, errNobody):
		f.nobody(w, r)
	default:
		f.o.Log.Error("a login could not be looked up", "error", err)
		refuse(w, http.StatusServiceUnavailable, "server_error", "login_unavailable", "The login cannot be checked now.")
	}
	return c, false
}

// logout is POST /auth/logout. Unlike the dashboard's it ends the login here, too, and not in the browser only.
func (f *Front) logout(w http.ResponseWriter, r *http.Request) {
	if !f.sameSite(r) {
		detail(w, http.StatusForbidden, "A page of another origin may not log out here")
		return
	}
	login, err := f.loginOf(r)
	if err == nil && login != "" {
		err = f.endLogin(login)
	}
	if err != nil {
		f.o.Log.Error("a login could not be ended", "error", err)
		detail(w, http.StatusServiceUnavailable, "The login cannot be ended now")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	f.clearCookies(w, r)
	w.Header().Set("Location", loginPath)
	w.WriteHeader(http.StatusFound)
}

// me is GET /api/auth/me.
func (f *Front) me(w http.ResponseWriter, r *http.Request) {
	c, ok := f.known(w, r)
	if !ok {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, struct {
		User     string `json:"user_id"`
		Email    string `json:"email"`
		Name     string `json:"display_name"`
		Org      string `json:"org_id"`
		Provider string `json:"provider"`
		Expires  int64  `json:"expires_at"`
	}{c.name, "", c.name, "", provider, c.until.Unix()})
}

// providers is GET /api/auth/providers.
func providers(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"providers": []any{map[string]any{"name": provider, "display_name": "Username & Password", "supports_password": true}}})
}

// loginPage says what this address is, to who opens it in a browser.
func loginPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "This is the API of a Hermes Agent. Apps log in with POST /auth/password-login.\n")
}

// sameSite reports whether a request may change something: it comes from no page, or from one of this server.
func (f *Front) sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	return len(r.Header.Values("Origin")) == 0 || f.o.Own(r)
}
