package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/web"
)

// adminEnterPath takes the key of a one-time link.
const adminEnterPath = web.OwnerPath + "/enter"

// adminSessionLife is how long a login to the admin UI holds, however much it is used.
const adminSessionLife = 12 * time.Hour

// AdminLink opens the admin UI once.
type AdminLink struct {
	// Here is the link for a browser on this machine. It is empty where plain HTTP does not reach the server there.
	Here string `json:"url,omitempty"`
	// Elsewhere is the link for a browser on any machine. It is empty unless MOBILE_ADMIN is on and other machines reach the server
	// by https, or by an http public address.
	Elsewhere string    `json:"public_url,omitempty"`
	Expires   time.Time `json:"expires_at"`
}

// Errors of AdminLink.
var (
	errAdminOff     = errors.New("the admin UI is off (MOBILE_ADMIN): set MOBILE_ADMIN=local, then restart the server")
	errAdminNowhere = errors.New("no browser on this machine reaches the server: let MOBILE_HOST be 127.0.0.1 or 0.0.0.0, or set MOBILE_ADMIN=on with an admin token and MOBILE_PUBLIC_URL")
)

// AdminLink makes a link that opens the admin UI, once and within two minutes. It is a secret: show it to whoever may open the
// admin socket, and to nobody else. The context says who asks for it.
func (s *Server) AdminLink(ctx context.Context) (AdminLink, error) {
	if s.cfg.Admin == adminOff {
		return AdminLink{}, errAdminOff
	}
	link := AdminLink{Here: s.localBase(), Expires: time.Now().Add(onetime.KeyLife).UTC().Truncate(time.Second)}
	if s.cfg.Admin == adminOn {
		if base, local := s.publicBase(); s.cfg.PublicURL != "" || s.certs != nil && !local {
			link.Elsewhere = base
		}
	}
	if link.Here == "" && link.Elsewhere == "" {
		return AdminLink{}, errAdminNowhere
	}
	path := adminEnterPath + "?" + url.Values{onetime.KeyName: {s.owners.Key()}}.Encode()
	for _, base := range []*string{&link.Here, &link.Elsewhere} {
		if *base != "" {
			*base += path
		}
	}
	s.recordAnyway(ctx, "admin.link", "", "")
	return link, nil
}

// adminEnter exchanges the key of a link for a session, and leads on to the page so that the key stays in no history.
func (s *Server) adminEnter(w http.ResponseWriter, r *http.Request) {
	way, _ := s.adminWay(r)
	if !s.fromOwnPage(r, true) {
		refuse(w, http.StatusForbidden, "foreign", "A link is opened in a browser, and not by another page.")
		return
	}
	to := ".." + web.OwnerPath // relative, since a proxy may have the server below a path
	if !way.usable() {
		seeOther(w, to) // the page says what is missing, and the key stays good
		return
	}
	session, err := s.owners.Exchange(r)
	switch {
	case errors.Is(err, onetime.ErrNotOpened):
		refuse(w, http.StatusMethodNotAllowed, "not_opened", "Open this link in a browser.")
		return
	case err != nil && !s.owners.Holds(r, s.adminCookie(way)):
		s.rejectedLogin(r, http.StatusForbidden, "one-time link")
		to += "?" + linkSpent
	case err == nil:
		s.loggedIn(r, "one-time link")
		s.setAdminCookie(w, way, session)
	}
	seeOther(w, to)
}

// seeOther leads on to an address, which stays as it is.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// linkSpent in the address tells the page that a link was of no use.
const linkSpent = "link=spent"

// adminCookie names the cookie of a session. Over https it has the prefix by which a browser keeps other hosts and plain http from
// setting it. The port is in the name, since cookies are shared by all ports of a host.
func (s *Server) adminCookie(w adminWay) string {
	if w.encrypted {
		return "__Host-hm_admin_" + s.port()
	}
	return "hm_admin_" + s.port()
}

// setAdminCookie gives a session to a browser, or takes it back where it is empty.
func (s *Server) setAdminCookie(w http.ResponseWriter, way adminWay, session string) {
	age := int(adminSessionLife / time.Second)
	if session == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{Name: s.adminCookie(way), Value: session, Path: "/", MaxAge: age, HttpOnly: true, Secure: way.encrypted,
		SameSite: http.SameSiteStrictMode})
}
