package server

import (
	"encoding/json"
	"net/http"
)

// takesToken reports whether the admin token can begin a login that comes this way.
func (l *logins) takesToken(way adminWay) bool {
	return l.cfg.Admin == adminOn && (way.encrypted || way.plain) && l.cfg.AdminPasskey != passkeyRequired
}

// login accepts the admin token. Wrong ones count like wrong tokens of devices.
func (l *logins) login(w http.ResponseWriter, r *http.Request) {
	way, _ := l.way(r)
	if l.cfg.Admin != adminOn {
		refuse(w, http.StatusForbidden, "link", "Only a one-time link opens the admin UI: run hermes-mobile admin on this machine.")
		return
	}
	if l.cfg.AdminPasskey == passkeyRequired {
		refuse(w, http.StatusForbidden, "passkey", "Log in with a passkey: the admin token alone isn't enough.")
		return
	}
	addr := l.addresses.client(r)
	if l.filter.blocked(w, addr) {
		l.filter.note(addr, http.StatusTooManyRequests, "too many wrong tokens")
		refuse(w, http.StatusTooManyRequests, "rate_limited", "Too many wrong tokens came from this address: wait before the next try.")
		return
	}
	if !way.encrypted && !way.plain {
		refuse(w, http.StatusForbidden, "encrypt", "The admin token is accepted over https only. A proxy that terminates https must send X-Forwarded-Proto.")
		return
	}
	var in struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "The request isn't valid JSON.")
		return
	}
	notBlocked := func() bool { _, blocked := l.filter.guard.Blocked(addr); return !blocked }
	right, err := l.token.check(r.Context(), in.Token, notBlocked, func() { l.filter.guard.Wrong(addr) })
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "2")
		l.filter.note(addr, http.StatusTooManyRequests, "too many logins at once")
		refuse(w, http.StatusTooManyRequests, "busy", "Too many logins are being checked: try again in a moment.")
		return
	case !right:
		l.rejected(r, http.StatusUnauthorized, "admin token")
		refuse(w, http.StatusUnauthorized, "wrong_token", "This isn't the admin token.")
		return
	}
	if t, shared := l.tokens.Match(in.Token); shared { // a hash in the settings can't be compared earlier
		l.log.Error("login to the admin UI rejected: the admin token is also a device token, set another one", "label", t.Label)
		refuse(w, http.StatusForbidden, "shared_token", "The admin token is also a device's token. Set another one.")
		return
	}
	if way.plain {
		l.log.Warn("the admin token crossed the network unencrypted", "addr", addr)
	}
	if l.cfg.AdminPasskey == passkeyBoth {
		l.askForPasskey(w, r, way)
		return
	}
	l.loggedIn(r, "admin token")
	answer(w, l.admit(w, way), nil)
}
