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
	// keyPrefix begins every key, so that people and scanners for leaked secrets know one.
	keyPrefix = "hmk_"
	// maxKeys is how many keys a user may have.
	maxKeys = 50
	// maxLabel is how many characters the label of a key may have.
	maxLabel = 64
	// useEvery is how exactly the last use of a key is known.
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

// NewKey is a key that was just made: the only time it is shown.
type NewKey struct {
	Key
	Secret Secret `json:"key"`
	// BaseURL is what an OpenAI client needs beside the key, empty where the API is not served.
	BaseURL string `json:"base_url,omitempty"`
}

// Secret is a key that does not show itself when it is printed or logged.
type Secret string

// Format hides it from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// LogValue hides it from the log.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// Reveal returns it.
func (s Secret) Reveal() string { return string(s) }

func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

func shownKey(k *store.FrontKey) Key {
	return Key{ID: k.ID, User: k.Name, Label: k.Label, CreatedAt: k.CreatedAt.UTC(), ExpiresAt: moment(k.Until), UsedAt: moment(k.UsedAt)}
}

// CheckLabel returns why a text cannot be the label of a key.
func CheckLabel(label string) error {
	if !utf8.ValidString(label) || utf8.RuneCountInString(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("label %q: it must have at most %d characters, all of them printable", label, maxLabel)
	}
	return nil
}

// AddKey makes a key for a user. It is valid for a time, or for ever where that is zero.
func (u *Users) AddKey(ctx context.Context, name, label string, life time.Duration) (NewKey, error) {
	label = strings.TrimSpace(label)
	if err := CheckLabel(label); err != nil {
		return NewKey{}, err
	}
	if life < 0 {
		return NewKey{}, fmt.Errorf("a key cannot be valid for %v: give a time that is not negative", life)
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
		return NewKey{}, fmt.Errorf("user %s has %d keys, which is the limit: remove one with hermes-mobile users key remove", user.Name, len(all))
	}
	secret, _ := newToken()
	secret = keyPrefix + secret
	now := u.now().Truncate(time.Millisecond) // as it is stored
	k := store.FrontKey{ID: "k" + newID()[1:9], Hash: hashToken(secret), User: user.ID, Name: user.Name, Label: label, CreatedAt: now}
	if life > 0 {
		k.Until = now.Add(life)
	}
	err = u.store.Do(func(tx *store.Tx) error {
		if err := tx.AddFrontKey(k, now); err != nil {
			return err
		}
		return tx.Record(ctx, "api_key.added", user.Name, strings.TrimSpace(k.ID+" "+label))
	})
	return NewKey{Key: shownKey(&k), Secret: Secret(secret)}, err
}

// Keys returns the keys of a user, or all where the name is empty.
func (u *Users) Keys(ctx context.Context, name string) ([]Key, error) {
	if name != "" {
		user, err := u.find(ctx, name)
		if err != nil {
			return nil, err
		}
		name = user.Name
	}
	all, err := u.store.FrontKeys(ctx)
	list := []Key{}
	for _, k := range all {
		if name == "" || k.Name == name {
			list = append(list, shownKey(k))
		}
	}
	return list, err
}

// RemoveKey drops a key by its id.
func (u *Users) RemoveKey(ctx context.Context, id string) error {
	if strings.HasPrefix(id, keyPrefix) {
		return errors.New("that is the key itself, which belongs in no command line: give its ID of hermes-mobile users key list")
	}
	k, err := u.store.FrontKeyByID(ctx, id)
	if err != nil {
		return err
	}
	if k == nil {
		return fmt.Errorf("there is no key %q: hermes-mobile users key list shows all", id)
	}
	return u.store.Do(func(tx *store.Tx) error {
		if err := tx.RemoveFrontKey(id); err != nil {
			return err
		}
		return tx.Record(ctx, "api_key.removed", k.Name, strings.TrimSpace(k.ID+" "+k.Label))
	})
}

// keyLogin stands for a key where a login has a name.
func keyLogin(id string) string { return "key/" + id }

// EndKey ends the requests of a key that was removed.
func (f *Proxy) EndKey(id string) { f.live.end("", keyLogin(id)) }

// bearer returns what a request has as a bearer token. One that has is a program's: its cookies, and where its page is from, count
// for nothing, since no page of another origin can make a browser send the token.
func bearer(r *http.Request) (token string, there bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", false // such as what a proxy asks for itself
	}
	return strings.TrimSpace(token), true
}

// holder returns who has a key, or answers the request.
func (f *Proxy) holder(w http.ResponseWriter, r *http.Request, token string) (caller, bool) {
	var k *store.FrontKey
	var err error
	if strings.HasPrefix(token, keyPrefix) {
		k, err = f.o.Store.FrontKey(r.Context(), hashToken(token))
	}
	now := f.o.Now()
	switch {
	case err != nil:
		f.o.Log.Error("key not looked up", "err", err)
		refuse(w, http.StatusServiceUnavailable, "server_error", "login_unavailable", "The key cannot be checked now.")
		return caller{}, false
	case k == nil:
		f.wrongKey(w, r, "Incorrect API key provided.")
		return caller{}, false
	case !k.Until.IsZero() && !now.Before(k.Until):
		// It was right once, so it is no guess.
		noKey(w, "This API key has expired: ask the owner of the server for another one.")
		return caller{}, false
	}
	if now.Sub(k.UsedAt) >= useEvery {
		if err := f.o.Store.Do(func(tx *store.Tx) error { return tx.UseFrontKey(k.ID, now) }); err != nil {
			f.o.Log.Error("use of a key not stored", "err", err)
		}
	}
	return caller{id: k.User, name: k.Name, login: keyLogin(k.ID), until: k.Until, key: k.Hash}, true
}

// wrongKey answers a key that there is not. It counts as a guess.
func (f *Proxy) wrongKey(w http.ResponseWriter, r *http.Request, text string) {
	addr := f.o.Client(r)
	f.failures.login(addr)
	attempt, wait := f.guesses.begin(addr, "")
	if wait > 0 {
		f.o.Metrics.FrontLogins.WithLabelValues("throttled").Inc()
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many wrong API keys. Try again shortly.")
		return
	}
	attempt.wrong()
	f.o.Metrics.FrontLogins.WithLabelValues("wrong_key").Inc()
	f.o.Log.Warn("key rejected", "addr", addr)
	noKey(w, text)
}

// noKey answers a request without a key that holds, as OpenAI's API does.
func noKey(w http.ResponseWriter, text string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	refuse(w, http.StatusUnauthorized, badRequest, "invalid_api_key", text)
}
