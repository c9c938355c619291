package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/passhash"
)

// maxTokenChecks is how many logins wait for their token to be checked, the one that is being checked included. A check takes a
// tenth of a second and 32 MiB, so a flood of logins gets refusals and not the machine.
const maxTokenChecks = 4

// errChecking: too many logins wait already.
var errChecking = errors.New("too many logins are being checked")

// adminToken checks the admin token, of which it knows the hash. Safe for concurrent use.
type adminToken struct {
	hash    passhash.Hash
	waiting chan struct{}
	one     chan struct{}
}

// newAdminToken hashes a token that the settings hold in clear. The clear text is not kept.
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

// withoutAdminToken is a copy of settings that does not hold the token.
func withoutAdminToken(cfg *config.Config) *config.Config {
	c := *cfg
	c.AdminToken = ""
	return &c
}

// check reports whether this is the token. It checks one at a time: ready is asked when it is this one's turn, and wrong is told
// before it is the next one's, so that guesses made at once are counted as those made one after the other.
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

// adminLogin takes the admin token. Wrong ones count like wrong tokens of devices.
func (s *Server) adminLogin(w http.ResponseWriter, r *http.Request) {
	way, _ := s.adminWay(r)
	if s.cfg.Admin != adminOn {
		refuse(w, http.StatusForbidden, "link", "Only a one-time link opens the admin UI: run hermes-mobile admin on this machine.")
		return
	}
	if s.cfg.AdminPasskey == passkeyRequired {
		refuse(w, http.StatusForbidden, "passkey", "Log in with a passkey: the admin token alone is not enough.")
		return
	}
	addr, _ := access.Client(r, s.proxies)
	if after, blocked := s.guard.Blocked(addr); blocked {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())+1))
		s.turned.note(addr, http.StatusTooManyRequests, "too many wrong tokens")
		refuse(w, http.StatusTooManyRequests, "rate_limited", "Too many wrong tokens came from this address: wait before the next try.")
		return
	}
	if !way.encrypted && !way.plain {
		refuse(w, http.StatusForbidden, "encrypt", "The admin token is taken over https only. Behind a proxy that does https, it must send X-Forwarded-Proto.")
		return
	}
	var in struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "The request cannot be read.")
		return
	}
	notBlocked := func() bool { _, blocked := s.guard.Blocked(addr); return !blocked }
	right, err := s.adminToken.check(r.Context(), in.Token, notBlocked, func() { s.guard.Wrong(addr) })
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "2")
		s.turned.note(addr, http.StatusTooManyRequests, "too many logins at once")
		refuse(w, http.StatusTooManyRequests, "busy", "Too many logins are being checked: try again in a moment.")
		return
	case !right:
		s.rejectedLogin(r, http.StatusUnauthorized, "admin token")
		refuse(w, http.StatusUnauthorized, "wrong_token", "This is not the admin token.")
		return
	}
	if t, shared := s.tokens.Match(in.Token); shared { // settings with a hash cannot be compared before
		s.log.Error("login to the admin UI rejected: the admin token is a device token, too; set another one", "label", t.Label)
		refuse(w, http.StatusForbidden, "shared_token", "The admin token is a device's token, too. Set another one.")
		return
	}
	if way.plain {
		s.log.Warn("the admin token crossed the network unencrypted", "addr", addr)
	}
	if s.cfg.AdminPasskey == passkeyBoth {
		s.askForPasskey(w, r, way)
		return
	}
	s.loggedIn(r, "admin token")
	answer(w, s.admit(w, way), nil)
}

func (s *Server) adminLogout(w http.ResponseWriter, r *http.Request) {
	way, _ := s.adminWay(r)
	if cookie := s.adminCookie(way); s.owners.Holds(r, cookie) {
		s.owners.End(r, cookie)
		s.recordAnyway(audit.With(r.Context(), s.adminActor(r)), "admin.logout", "", "")
	}
	s.setAdminCookie(w, way, "")
	answer(w, nil, nil)
}

// loggedIn tells the log and the audit log of a login, and by what it was made.
func (s *Server) loggedIn(r *http.Request, by string) {
	s.log.Info("logged in to the admin UI", "addr", s.clientAddress(r), "by", by)
	s.recordAnyway(audit.With(r.Context(), s.adminActor(r)), "admin.login", "", by)
}

// rejectedLogin tells them of one that failed.
func (s *Server) rejectedLogin(r *http.Request, status int, by string) {
	addr, _ := access.Client(r, s.proxies)
	s.turned.note(addr, status, "login to the admin UI rejected: "+by)
	s.failed.note(r.Context(), "admin.login_failed", addr.String(), by)
}
