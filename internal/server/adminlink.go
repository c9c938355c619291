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

// adminEnterPath is the path of a one-time link.
const adminEnterPath = web.OwnerPath + "/enter"

// linkSpent in the address tells the page that a link was already used or has expired.
const linkSpent = "link=spent"

// Errors of link.
var (
	errAdminOff     = errors.New("the admin UI is off (MOBILE_ADMIN): set MOBILE_ADMIN=local, then restart the server")
	errAdminNowhere = errors.New("no browser on this machine reaches the server: set MOBILE_HOST to 127.0.0.1 or 0.0.0.0, or set MOBILE_ADMIN=on with an admin token and MOBILE_PUBLIC_URL")
)

// link returns a link that opens the admin UI once, within two minutes.
func (l *logins) link(ctx context.Context) (AdminLink, error) {
	if l.cfg.Admin == adminOff {
		return AdminLink{}, errAdminOff
	}
	link := AdminLink{Here: l.addresses.local(), Expires: time.Now().Add(onetime.KeyLife).UTC().Truncate(time.Second)}
	if l.cfg.Admin == adminOn {
		if base, local := l.addresses.public(); l.cfg.PublicURL != "" || l.addresses.certs != nil && !local {
			link.Elsewhere = base
		}
	}
	if link.Here == "" && link.Elsewhere == "" {
		return AdminLink{}, errAdminNowhere
	}
	path := adminEnterPath + "?" + url.Values{onetime.KeyName: {l.sessions.Key()}}.Encode()
	for _, base := range []*string{&link.Here, &link.Elsewhere} {
		if *base != "" {
			*base += path
		}
	}
	l.audit.recordAnyway(ctx, "admin.link", "", "")
	return link, nil
}

// enter exchanges the key of a link for a session. It redirects to the page, so the key stays in no
// history.
func (l *logins) enter(w http.ResponseWriter, r *http.Request) {
	way, _ := l.way(r)
	if !l.fromOwnPage(r, true) {
		refuse(w, http.StatusForbidden, "foreign", "Open this link in a browser, and not from another page.")
		return
	}
	to := ".." + web.OwnerPath // relative, because a proxy may serve us below a path
	if !way.usable() {
		seeOther(w, to) // the page says what is missing, and the key stays valid
		return
	}
	session, err := l.sessions.Exchange(r)
	switch {
	case errors.Is(err, onetime.ErrNotOpened):
		refuse(w, http.StatusMethodNotAllowed, "not_opened", "Open this link in a browser.")
		return
	case err != nil && !l.sessions.Holds(r, l.cookie(way)):
		l.rejected(r, http.StatusForbidden, "one-time link")
		to += "?" + linkSpent
	case err == nil:
		l.loggedIn(r, "one-time link")
		l.setCookie(w, way, session)
	}
	seeOther(w, to)
}

// seeOther redirects to an address, which http.Redirect would make absolute.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
