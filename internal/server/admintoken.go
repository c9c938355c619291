package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/passhash"
)

// maxTokenChecks is how many logins may wait for the check of their token, with the one that is
// being checked. A check takes a tenth of a second and 32 MiB, so a flood of logins gets rejections
// and not the machine.
const maxTokenChecks = 4

// errChecking reports that too many logins are waiting.
var errChecking = errors.New("too many logins are being checked")

// adminToken checks the admin token, of which it has the hash. It is safe for concurrent use.
type adminToken struct {
	hash    passhash.Hash
	waiting chan struct{}
	one     chan struct{}
}

// newAdminToken hashes a token that the settings have in clear text. It doesn't keep the clear
// text.
func newAdminToken(setting config.Secret) (*adminToken, error) {
	a := &adminToken{waiting: make(chan struct{}, maxTokenChecks), one: make(chan struct{}, 1)}
	if setting == "" {
		return a, nil // matches nothing
	}
	if !strings.HasPrefix(setting.Reveal(), passhash.Prefix) {
		a.hash = passhash.New(passhash.DefaultCost, setting.Reveal())
		return a, nil
	}
	var err error
	a.hash, err = passhash.Parse(setting.Reveal())
	return a, err
}

// withoutAdminToken returns a copy of the settings without the token.
func withoutAdminToken(cfg *config.Config) *config.Config {
	c := *cfg
	c.AdminToken = ""
	return &c
}

// check reports whether this is the token. It checks one token at a time. It calls ready when the
// turn comes, and wrong before the next turn, so simultaneous guesses count like those made one
// after the other.
func (a *adminToken) check(ctx context.Context, token string, ready func() bool, wrong func()) (right bool, err error) {
	select {
	case a.waiting <- struct{}{}:
	default:
		return false, errChecking
	}
	defer func() { <-a.waiting }()
	select {
	case a.one <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-a.one }()
	if !ready() {
		return false, errChecking
	}
	if !a.hash.Matches(token) {
		wrong()
		return false, nil
	}
	return true, nil
}

// bearer returns the bearer token of a request.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// sameSecret compares two secrets in constant time.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
