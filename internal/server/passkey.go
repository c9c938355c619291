package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/passkey"
)

// Values of MOBILE_ADMIN_PASSKEY. The other one is "optional".
const (
	passkeyRequired = "required"
	passkeyBoth     = "both"
)

// Steps of a login. An answer to the challenge of one is of no use in the other.
const (
	passkeyAlone      = "alone"
	passkeyAfterToken = "after the token"
)

// openPasskeys refuses settings that ask for a passkey where browsers allow none.
func (s *Server) openPasskeys() error {
	s.passkeys = passkey.New(s.store, s.log, time.Now)
	if mode := s.cfg.AdminPasskey; s.cfg.Admin == adminOn && (mode == passkeyRequired || mode == passkeyBoth) {
		if _, ok := passkey.SiteOf(s.cfg.PublicURL); !ok {
			return fmt.Errorf("MOBILE_ADMIN_PASSKEY is %s, and browsers use passkeys only at an https address with a name: set MOBILE_PUBLIC_URL to one, or MOBILE_ADMIN_PASSKEY=optional", mode)
		}
	}
	return nil
}

// passkeySite is the site of which a page uses passkeys: the public address, or localhost for a browser on this machine. ok: there
// is one. It is never what a request from elsewhere claims.
func (s *Server) passkeySite(r *http.Request) (site passkey.Site, ok bool) {
	if !access.FromHere(r) {
		return passkey.SiteOf(s.cfg.PublicURL)
	}
	if site, ok = passkey.SiteOf(s.base(r)); site.ID != "localhost" {
		return passkey.Site{}, false
	}
	return site, ok
}

// takesToken reports whether the admin token begins a login that comes this way.
func (s *Server) takesToken(way adminWay) bool {
	return s.cfg.Admin == adminOn && (way.encrypted || way.plain) && s.cfg.AdminPasskey != passkeyRequired
}

// takesPasskey reports whether a passkey alone is a login for a request, and there is one.
func (s *Server) takesPasskey(r *http.Request, way adminWay) bool {
	return way.usable() && s.cfg.AdminPasskey != passkeyBoth && s.hasPasskey(r)
}

func (s *Server) hasPasskey(r *http.Request) bool {
	site, ok := s.passkeySite(r)
	if !ok {
		return false
	}
	usable, err := s.passkeys.Usable(r.Context(), site)
	if err != nil {
		s.log.Error("list passkeys", "err", err)
	}
	return usable
}

// passkeyList is what the admin UI shows of passkeys.
type passkeyList struct {
	Passkeys []passkey.Passkey `json:"passkeys"`
	// Here: this page can make one.
	Here bool   `json:"here"`
	Mode string `json:"mode"`
}

// ownerPasskeys serves what an owner who is logged in does with passkeys.
func (s *Server) ownerPasskeys(mux *http.ServeMux) {
	mux.HandleFunc("GET /passkeys", func(w http.ResponseWriter, r *http.Request) {
		list, err := s.passkeys.List(r.Context())
		_, here := s.passkeySite(r)
		answer(w, passkeyList{list, here, s.cfg.AdminPasskey}, err)
	})
	for pattern, handler := range map[string]http.HandlerFunc{"POST /passkeys/begin": s.passkeyBegin, "POST /passkeys/add": s.passkeyAdd, "POST /passkeys/remove": s.passkeyRemove} {
		mustBeAudited(pattern)
		mux.HandleFunc(pattern, handler)
	}
}

var errNoSite = errors.New("browsers make passkeys only at an https address with a name: open the admin UI at MOBILE_PUBLIC_URL, or at localhost")

func (s *Server) passkeyBegin(w http.ResponseWriter, r *http.Request) {
	site, ok := s.passkeySite(r)
	if !ok {
		answer(w, nil, errNoSite)
		return
	}
	v, err := s.passkeys.Begin(r.Context(), site, s.adminCookies(r))
	answer(w, v, err)
}

func (s *Server) passkeyAdd(w http.ResponseWriter, r *http.Request) {
	site, ok := s.passkeySite(r)
	var in struct {
		Name       string          `json:"name"`
		Credential json.RawMessage `json:"credential"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !ok {
		refuse(w, http.StatusBadRequest, "bad_request", "The request cannot be read.")
		return
	}
	v, err := s.passkeys.Finish(r.Context(), site, s.adminCookies(r), in.Name, in.Credential)
	if err != nil {
		s.log.Warn("passkey not registered", "addr", s.clientAddress(r), "err", err)
	} else {
		s.log.Info("passkey registered", "addr", s.clientAddress(r), "passkey", v.ID, "name", v.Name)
	}
	answer(w, v, plainly(err))
}

// plainly leaves out why an answer was rejected, which is for the log.
func plainly(err error) error {
	if errors.Is(err, passkey.ErrRejected) {
		return errors.New("the server rejects this passkey: try again, and see its log for the reason")
	}
	return err
}

// passkeyRemove ends other logins, too: one of them may be by the passkey that is removed.
func (s *Server) passkeyRemove(w http.ResponseWriter, r *http.Request) {
	var c Command
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "The request cannot be read.")
		return
	}
	_, err := s.passkeys.Remove(r.Context(), c.ID)
	if err == nil {
		way, _ := s.adminWay(r)
		s.owners.EndOthers(r, s.adminCookie(way))
	}
	answer(w, nil, err)
}

// adminCookies is what the session of a request is known by.
func (s *Server) adminCookies(r *http.Request) string {
	way, _ := s.adminWay(r)
	var values []string
	for _, c := range r.CookiesNamed(s.adminCookie(way)) {
		values = append(values, c.Value)
	}
	return strings.Join(values, " ")
}

// passkeyAsk begins a login with a passkey alone.
func (s *Server) passkeyAsk(w http.ResponseWriter, r *http.Request) {
	way, _ := s.adminWay(r)
	site, ok := s.passkeySite(r)
	if !ok || !way.usable() || s.cfg.AdminPasskey == passkeyBoth {
		refuse(w, http.StatusForbidden, "link", "A passkey alone is no login here.")
		return
	}
	v, err := s.passkeys.Ask(site, passkeyAlone)
	answer(w, v, err)
}

// passkeyLogin takes the answer of a passkey. Wrong ones count like wrong tokens of devices.
func (s *Server) passkeyLogin(w http.ResponseWriter, r *http.Request) {
	way, _ := s.adminWay(r)
	addr, _ := access.Client(r, s.proxies)
	if after, blocked := s.guard.Blocked(addr); blocked {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())+1))
		s.turned.note(addr, http.StatusTooManyRequests, "too many wrong tokens")
		refuse(w, http.StatusTooManyRequests, "rate_limited", "Too many wrong logins came from this address: wait before the next try.")
		return
	}
	site, ok := s.passkeySite(r)
	if !ok || !way.usable() {
		refuse(w, http.StatusForbidden, "link", "A passkey is no login here.")
		return
	}
	var in struct {
		Credential json.RawMessage `json:"credential"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "The request cannot be read.")
		return
	}
	step := passkeyAlone
	if s.cfg.AdminPasskey == passkeyBoth {
		step = passkeyAfterToken
	}
	p, err := s.passkeys.Check(audit.With(r.Context(), s.adminActor(r)), site, step, in.Credential)
	switch {
	case errors.Is(err, passkey.ErrRejected):
		s.guard.Wrong(addr)
		s.turned.note(addr, http.StatusUnauthorized, "login to the admin UI rejected: "+err.Error())
		s.failed.note(r.Context(), "admin.login_failed", addr.String(), "passkey")
		code := "wrong_passkey"
		if errors.Is(err, passkey.ErrCloned) {
			code = "copied_passkey"
		}
		refuse(w, http.StatusUnauthorized, code, "This passkey is not accepted.")
		return
	case err != nil:
		s.log.Error("log in with a passkey", "err", err)
		refuse(w, http.StatusServiceUnavailable, "store", "The server cannot use its store now. Use a link: run hermes-mobile admin on its machine.")
		return
	}
	s.log.Info("logged in to the admin UI", "addr", addr, "by", "passkey", "passkey", p.ID)
	answer(w, s.admit(w, way), nil)
}

// askForPasskey answers the right admin token where a passkey must follow.
func (s *Server) askForPasskey(w http.ResponseWriter, r *http.Request, way adminWay) {
	site, ok := s.passkeySite(r)
	if !ok || !s.hasPasskey(r) {
		refuse(w, http.StatusForbidden, "no_passkey", "No passkey is registered for this address: run hermes-mobile admin on the server's machine, and register one.")
		return
	}
	v, err := s.passkeys.Ask(site, passkeyAfterToken)
	if err != nil {
		answer(w, nil, err)
		return
	}
	s.log.Info("admin token accepted, asking for a passkey", "addr", s.clientAddress(r))
	s.recordAnyway(audit.With(r.Context(), s.adminActor(r)), "admin.token", "", "")
	answer(w, struct {
		OwnerAccess
		Ask any `json:"ask"`
	}{OwnerAccess{Access: "passkey", Plain: way.plain}, v}, nil)
}
