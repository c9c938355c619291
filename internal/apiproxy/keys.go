package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hermes-mobile/internal/store"
)

const (
	// keyPrefix starts every key, so people and secret scanners recognize one.
	keyPrefix = "hmk_"
	// maxKeys is how many keys a user may have.
	maxKeys = 50
	// maxLabel is the maximum length of a key's label in characters.
	maxLabel = 64
	// useEvery is the precision of a key's last use.
	useEvery = time.Minute
)

// Key is a key of a user, as the owner of the server sees it.
type Key struct {
	ID        string     `json:"id"`
	User      string     `json:"user"`
	Label     string     `json:"label"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"` // nil: never
	UsedAt    *time.Time `json:"last_used_at"`
}

// NewKey is a key that was just created. It is shown only here.
type NewKey struct {
	Key
	Secret Secret `json:"key"`
	// BaseURL is the other setting that an OpenAI client needs. It is empty if the server doesn't
	// serve the API.
	BaseURL string `json:"base_url,omitempty"`
}

// Secret is a key. It hides itself when it is printed or logged.
type Secret string

// Format implements fmt.Formatter. It hides the key from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// LogValue implements slog.LogValuer. It hides the key from the log.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// Reveal returns the key.
func (s Secret) Reveal() string { return string(s) }

func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

func shownKey(k *store.APIKey) Key {
	return Key{ID: k.ID, User: k.Name, Label: k.Label, CreatedAt: k.CreatedAt.UTC(), ExpiresAt: moment(k.Until), UsedAt: moment(k.UsedAt)}
}

// CheckLabel returns why a text can't be the label of a key.
func CheckLabel(label string) error {
	if !utf8.ValidString(label) || utf8.RuneCountInString(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("label %q: use at most %d printable characters", label, maxLabel)
	}
	return nil
}

// AddKey creates a key for a user. A life of 0 means that the key doesn't expire.
func (u *Users) AddKey(ctx context.Context, name, label string, life time.Duration) (NewKey, error) {
	label = strings.TrimSpace(label)
	if err := CheckLabel(label); err != nil {
		return NewKey{}, err
	}
	if life < 0 {
		return NewKey{}, fmt.Errorf("lifetime %v is negative: give a positive time, or none for a key that doesn't expire", life)
	}
	user, err := u.find(ctx, name)
	if err != nil {
		return NewKey{}, err
	}
	all, err := u.Keys(ctx, user.Name)
	if err != nil {
		return NewKey{}, err
	}
	if len(all) >= maxKeys {
		return NewKey{}, fmt.Errorf("user %s has %d keys, which is the maximum: remove one with hermes-mobile users key remove", user.Name, len(all))
	}
	secret, _ := newToken()
	secret = keyPrefix + secret
	now := u.now().Truncate(time.Millisecond) // as it is stored
	k := store.APIKey{ID: "k" + newID()[1:9], Hash: hashToken(secret), User: user.ID, Name: user.Name, Label: label, CreatedAt: now}
	if life > 0 {
		k.Until = now.Add(life)
	}
	err = u.store.Do(func(tx *store.Tx) error {
		if err := tx.API().AddKey(k, now); err != nil {
			return err
		}
		return tx.Record(ctx, "api_key.added", user.Name, strings.TrimSpace(k.ID+" "+label))
	})
	return NewKey{Key: shownKey(&k), Secret: Secret(secret)}, err
}

// Keys returns the keys of a user, or of all users if the name is empty.
func (u *Users) Keys(ctx context.Context, name string) ([]Key, error) {
	if name != "" {
		user, err := u.find(ctx, name)
		if err != nil {
			return nil, err
		}
		name = user.Name
	}
	all, err := u.store.API().Keys(ctx)
	list := []Key{}
	for _, k := range all {
		if name == "" || k.Name == name {
			list = append(list, shownKey(k))
		}
	}
	return list, err
}

// RemoveKey removes the key with an id.
func (u *Users) RemoveKey(ctx context.Context, id string) error {
	if strings.HasPrefix(id, keyPrefix) {
		return errors.New("this is the key itself, which doesn't belong on a command line: give its ID from hermes-mobile users key list")
	}
	k, err := u.store.API().KeyByID(ctx, id)
	if err != nil {
		return err
	}
	if k == nil {
		return fmt.Errorf("no key %q: list the keys with hermes-mobile users key list", id)
	}
	return u.store.Do(func(tx *store.Tx) error {
		if err := tx.API().RemoveKey(id); err != nil {
			return err
		}
		return tx.Record(ctx, "api_key.removed", k.Name, strings.TrimSpace(k.ID+" "+k.Label))
	})
}

// keyLogin returns the name that identifies a key where a login has a name.
func keyLogin(id string) string { return "key/" + id }

// EndKey ends the requests of a key that was removed.
func (f *Proxy) EndKey(id string) { f.live.end("", keyLogin(id)) }

// bearer returns the bearer token of a request. A request with a token comes from a program: its
// cookies and origin don't count, because no page of another origin can make a browser send the
// token.
func bearer(r *http.Request) (token string, there bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", false // such as basic authentication of a proxy
	}
	return strings.TrimSpace(token), true
}

// holder returns the user of a key, or answers the request.
func (l *logins) holder(w http.ResponseWriter, r *http.Request, token string) (caller, bool) {
	var k *store.APIKey
	var err error
	if strings.HasPrefix(token, keyPrefix) {
		k, err = l.o.Store.API().Key(r.Context(), hashToken(token))
	}
	now := l.o.Now()
	switch {
	case err != nil:
		l.o.Log.Error("key not looked up", "err", err)
		refuse(w, http.StatusServiceUnavailable, "server_error", "login_unavailable", "The key can't be checked right now.")
		return caller{}, false
	case k == nil:
		l.wrongKey(w, r, "Incorrect API key provided.")
		return caller{}, false
	case !k.Until.IsZero() && !now.Before(k.Until):
		// The key was valid once, so this is no guess.
		noKey(w, "This API key has expired. Ask the owner of the server for another one.")
		return caller{}, false
	}
	if now.Sub(k.UsedAt) >= useEvery {
		if err := l.o.Store.Do(func(tx *store.Tx) error { return tx.API().UseKey(k.ID, now) }); err != nil {
			l.o.Log.Error("last use of key not stored", "err", err)
		}
	}
	return caller{id: k.User, name: k.Name, login: keyLogin(k.ID), until: k.Until, key: k.Hash}, true
}

// wrongKey answers a request with an unknown key, which counts as a guess.
func (l *logins) wrongKey(w http.ResponseWriter, r *http.Request, text string) {
	addr := l.o.Client(r)
	l.failures.login(addr)
	attempt, wait := l.guesses.begin(addr, "")
	if wait > 0 {
		l.o.Metrics.FrontLogins.WithLabelValues("throttled").Inc()
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many wrong API keys. Try again shortly.")
		return
	}
	attempt.wrong()
	l.o.Metrics.FrontLogins.WithLabelValues("wrong_key").Inc()
	l.o.Log.Warn("key rejected", "addr", addr)
	noKey(w, text)
}

// noKey answers a request without a valid key in OpenAI's format.
func noKey(w http.ResponseWriter, text string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	refuse(w, http.StatusUnauthorized, badRequest, "invalid_api_key", text)
}
