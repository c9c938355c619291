package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/passkey"
)

// Values of MOBILE_ADMIN_PASSKEY. The third one is "optional".
const (
	passkeyRequired = "required"
	passkeyBoth     = "both"
)

// Steps of a login. The answer to a challenge of one is invalid in the other.
const (
	passkeyAlone      = "alone"
	passkeyAfterToken = "after the token"
)

// checkPasskeySettings rejects settings that require a passkey where browsers allow none.
func checkPasskeySettings(cfg *config.Config) error {
	if mode := cfg.AdminPasskey; cfg.Admin == adminOn && (mode == passkeyRequired || mode == passkeyBoth) {
		if _, ok := passkey.SiteOf(cfg.PublicURL); !ok {
			return fmt.Errorf("MOBILE_ADMIN_PASSKEY is %s, and browsers use passkeys only at an https address with a host name: set MOBILE_PUBLIC_URL to one, or MOBILE_ADMIN_PASSKEY=optional", mode)
		}
	}
	return nil
}

// passkeySite returns the site whose passkeys a page uses: the public address, or localhost for a
// browser on this machine. It never depends on what a request from elsewhere claims. ok says that
// there is one.
func (l *logins) passkeySite(r *http.Request) (site passkey.Site, ok bool) {
	if !access.FromHere(r) {
		return passkey.SiteOf(l.cfg.PublicURL)
	}
	if site, ok = passkey.SiteOf(l.addresses.base(r)); site.ID != "localhost" {
		return passkey.Site{}, false
	}
	return site, ok
}

// takesPasskey reports whether a passkey alone can log in a request, and whether one is registered.
func (l *logins) takesPasskey(r *http.Request, way adminWay) bool {
	return way.usable() && l.cfg.AdminPasskey != passkeyBoth && l.hasPasskey(r)
}

func (l *logins) hasPasskey(r *http.Request) bool {
	site, ok := l.passkeySite(r)
	if !ok {
		return false
	}
	usable, err := l.passkeys.Usable(r.Context(), site)
	if err != nil {
		l.log.Error("passkeys not listed", "err", err)
	}
	return usable
}

// passkeyAsk begins a login with a passkey alone.
func (l *logins) passkeyAsk(w http.ResponseWriter, r *http.Request) {
	way, _ := l.way(r)
	site, ok := l.passkeySite(r)
	if !ok || !way.usable() || l.cfg.AdminPasskey == passkeyBoth {
		refuse(w, http.StatusForbidden, "link", "A passkey alone can't log in here.")
		return
	}
	v, err := l.passkeys.Ask(site, passkeyAlone)
	answer(w, v, err)
}

// askForPasskey answers the right admin token if a passkey must follow.
func (l *logins) askForPasskey(w http.ResponseWriter, r *http.Request, way adminWay) {
	site, ok := l.passkeySite(r)
	if !ok || !l.hasPasskey(r) {
		refuse(w, http.StatusForbidden, "no_passkey", "No passkey is registered for this address: run hermes-mobile admin on the server's machine, and register one.")
		return
	}
	v, err := l.passkeys.Ask(site, passkeyAfterToken)
	if err != nil {
		answer(w, nil, err)
		return
	}
	l.log.Info("admin token accepted, asking for a passkey", "addr", l.addresses.clientText(r))
	l.audit.recordAnyway(audit.With(r.Context(), l.actor(r)), "admin.token", "", "")
	answer(w, struct {
		OwnerAccess
		Ask any `json:"ask"`
	}{OwnerAccess{Access: "passkey", Plain: way.plain}, v}, nil)
}

// passkeyLogin accepts the answer of a passkey. Wrong ones count like wrong tokens of devices.
func (l *logins) passkeyLogin(w http.ResponseWriter, r *http.Request) {
	way, _ := l.way(r)
	addr := l.addresses.client(r)
	if l.filter.blocked(w, addr) {
		l.filter.note(addr, http.StatusTooManyRequests, "too many wrong tokens")
		refuse(w, http.StatusTooManyRequests, "rate_limited", "Too many wrong logins came from this address: wait before the next try.")
		return
	}
	site, ok := l.passkeySite(r)
	if !ok || !way.usable() {
		refuse(w, http.StatusForbidden, "link", "A passkey can't log in here.")
		return
	}
	var in struct {
		Credential json.RawMessage `json:"credential"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "The request isn't valid JSON.")
		return
	}
	step := passkeyAlone
	if l.cfg.AdminPasskey == passkeyBoth {
		step = passkeyAfterToken
	}
	p, err := l.passkeys.Check(audit.With(r.Context(), l.actor(r)), site, step, in.Credential)
	switch {
	case errors.Is(err, passkey.ErrRejected):
		l.filter.guard.Wrong(addr)
		l.filter.note(addr, http.StatusUnauthorized, "login to the admin UI rejected: "+err.Error())
		l.failed.note(r.Context(), "admin.login_failed", addr.String(), "passkey")
		code := "wrong_passkey"
		if errors.Is(err, passkey.ErrCloned) {
			code = "copied_passkey"
		}
		refuse(w, http.StatusUnauthorized, code, "This passkey isn't accepted.")
		return
	case err != nil:
		l.log.Error("passkey login failed", "err", err)
		refuse(w, http.StatusServiceUnavailable, "store", "The server can't use its store right now. Use a link: run hermes-mobile admin on its machine.")
		return
	}
	l.log.Info("logged in to the admin UI", "addr", addr, "by", "passkey", "passkey", p.ID)
	answer(w, l.admit(w, way), nil)
}

// passkeyList is the answer to GET /passkeys in the admin UI.
type passkeyList struct {
	Passkeys []passkey.Passkey `json:"passkeys"`
	// Here says that this page can register one.
	Here bool   `json:"here"`
	Mode string `json:"mode"`
}

// mountPasskeys adds the passkey routes for an owner who is logged in.
func (l *logins) mountPasskeys(mux *http.ServeMux) {
	mux.HandleFunc("GET /passkeys", func(w http.ResponseWriter, r *http.Request) {
		list, err := l.passkeys.List(r.Context())
		_, here := l.passkeySite(r)
		answer(w, passkeyList{list, here, l.cfg.AdminPasskey}, err)
	})
	for pattern, handler := range map[string]http.HandlerFunc{"POST /passkeys/begin": l.passkeyBegin, "POST /passkeys/add": l.passkeyAdd, "POST /passkeys/remove": l.passkeyRemove} {
		mustBeAudited(pattern)
		mux.HandleFunc(pattern, handler)
	}
}

var errNoSite = errors.New("browsers register passkeys only at an https address with a host name: open the admin UI at MOBILE_PUBLIC_URL, or at localhost")

func (l *logins) passkeyBegin(w http.ResponseWriter, r *http.Request) {
	site, ok := l.passkeySite(r)
	if !ok {
		answer(w, nil, errNoSite)
		return
	}
	v, err := l.passkeys.Begin(r.Context(), site, l.cookies(r))
	answer(w, v, err)
}

func (l *logins) passkeyAdd(w http.ResponseWriter, r *http.Request) {
	site, ok := l.passkeySite(r)
	var in struct {
		Name       string          `json:"name"`
		Credential json.RawMessage `json:"credential"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !ok {
		refuse(w, http.StatusBadRequest, "bad_request", "The request isn't valid JSON.")
		return
	}
	v, err := l.passkeys.Finish(r.Context(), site, l.cookies(r), in.Name, in.Credential)
	if err != nil {
		l.log.Warn("passkey not registered", "addr", l.addresses.clientText(r), "err", err)
	} else {
		l.log.Info("passkey registered", "addr", l.addresses.clientText(r), "passkey", v.ID, "name", v.Name)
	}
	answer(w, v, withoutReason(err))
}

// withoutReason hides why a passkey was rejected. The reason is in the log.
func withoutReason(err error) error {
	if errors.Is(err, passkey.ErrRejected) {
		return errors.New("the server rejects this passkey: try again, and see its log for the reason")
	}
	return err
}

// passkeyRemove also ends all other logins: one of them may be by the removed passkey.
func (l *logins) passkeyRemove(w http.ResponseWriter, r *http.Request) {
	var c Command
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "The request isn't valid JSON.")
		return
	}
	_, err := l.passkeys.Remove(r.Context(), c.ID)
	if err == nil {
		way, _ := l.way(r)
		l.sessions.EndOthers(r, l.cookie(way))
	}
	answer(w, nil, err)
}
