package server

import (
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/web"
)

// The admin UI is open to whoever has the cookie of a session, and to nobody because of an address or a header. A session begins
// with a one-time link (adminlink.go) or with the admin token (adminlogin.go). Where a request seems to come from decides only
// which of the two a page may offer, and whether there is a page at all.
//
// A browser sends the cookie to every program that serves a page at another port of this host, such as a preview that the agent
// offers. So the API wants the secret of the page besides, which is told to the page once and kept where no other port reads it.

// ownerHeader is sent by the admin UI with each request, with the secret of the page once it has one. A page of another origin
// cannot send it without asking first, and is never allowed to.
const ownerHeader = "X-Hermes-Mobile-Admin"

// Values of MOBILE_ADMIN.
const (
	adminOff   = "off"
	adminLocal = "local"
	adminOn    = "on"
)

// OwnerAccess says how far the one who asks gets.
type OwnerAccess struct {
	// Access is "session" after a login, "link" where only a one-time link opens the page, "login" where the admin token or a passkey
	// does, too, "passkey" where the admin token was right and a passkey must follow, and "encrypt" where nothing does before the page
	// is reached by https.
	Access string `json:"access"`
	// Token and Passkey are what a login can begin with.
	Token   bool `json:"token,omitempty"`
	Passkey bool `json:"passkey,omitempty"`
	// Page is the secret of the page, told once at the beginning of a session.
	Page string `json:"page,omitempty"`
	// Plain: the token and what the page shows cross the network unencrypted, as the settings have it.
	Plain bool `json:"plain"`
}

// adminWay is how a request reaches the admin UI.
type adminWay struct {
	here      bool // it looks as if it came from this machine, which proves nothing
	encrypted bool // the client came by https, to us or to a proxy that is believed
	plain     bool // it crosses a network unencrypted, as the owner chose with an http public address
}

// usable reports whether a secret may come this way.
func (w adminWay) usable() bool { return w.here || w.encrypted || w.plain }

// adminWay says how a request reaches the admin UI. ok: there is one that way.
func (s *Server) adminWay(r *http.Request) (w adminWay, ok bool) {
	w.here = access.FromHere(r)
	w.encrypted = strings.HasPrefix(s.base(r), "https://")
	w.plain = !w.here && !w.encrypted && strings.HasPrefix(s.cfg.PublicURL, "http://")
	return w, s.cfg.Admin == adminOn || s.cfg.Admin == adminLocal && w.here
}

// ownerPage serves the admin UI and what it asks for.
func (s *Server) ownerPage() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+web.OwnerPath, s.page)
	mux.HandleFunc("GET "+web.OwnerPath+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, web.OwnerPath, http.StatusPermanentRedirect)
	})
	mux.HandleFunc(adminEnterPath, s.adminEnter)
	mux.Handle(web.OwnerPath+"/api/", http.StripPrefix(web.OwnerPath+"/api", s.ownerAPI()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.adminWay(r); !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// ownerAPI lets nobody through to the admin interface but the owner, in the admin UI.
func (s *Server) ownerAPI() http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /session", s.adminSession)
	open.HandleFunc("POST /login", s.adminLogin)
	open.HandleFunc("POST /logout", s.adminLogout)
	open.HandleFunc("POST /passkey/ask", s.passkeyAsk)
	open.HandleFunc("POST /passkey/login", s.passkeyLogin)
	open.Handle("/", s.ownerOnly(s.ownerRoutes()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(ownerHeader) == "" || !s.fromOwnPage(r, false) {
			refuse(w, http.StatusForbidden, "foreign", "This is for the admin UI only. Behind a proxy, it must pass on Host and X-Forwarded-Proto.")
			return
		}
		if r.Method != http.MethodGet {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				refuse(w, http.StatusForbidden, "foreign", "A change is sent as JSON.")
				return
			}
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		open.ServeHTTP(w, r)
	})
}

// fromOwnPage reports whether a page of this server asks, or the person at the browser, and no other page in that browser.
func (s *Server) fromOwnPage(r *http.Request, document bool) bool {
	return onetime.FromPage(r, func(string) bool {
		// Behind a proxy that does not name the scheme the page is at the address of the settings.
		return access.SameOrigin(r, s.base(r)) || !access.FromHere(r) && access.SameOrigin(r, s.cfg.PublicURL)
	}, document)
}

// ownerAccess decides how far a request gets.
func (s *Server) ownerAccess(r *http.Request) OwnerAccess {
	way, _ := s.adminWay(r)
	a := OwnerAccess{Plain: way.plain}
	switch {
	case !way.usable():
		a.Access = "encrypt"
	case s.owners.HoldsPage(r, s.adminCookie(way), r.Header.Get(ownerHeader)):
		a.Access = "session"
	default:
		a.Access = "link"
		if a.Token, a.Passkey = s.takesToken(way), s.takesPasskey(r, way); a.Token || a.Passkey {
			a.Access = "login"
		}
	}
	return a
}

// adminSession says how far a request gets, and tells the page of a link that was opened just now its secret.
func (s *Server) adminSession(w http.ResponseWriter, r *http.Request) {
	a := s.ownerAccess(r)
	if way, _ := s.adminWay(r); way.usable() && a.Access != "session" {
		if page, ok := s.owners.Claim(r, s.adminCookie(way)); ok {
			a.Access, a.Page = "session", page
		}
	}
	answer(w, a, nil)
}

// admit begins the session of a browser that has proven to be the owner's.
func (s *Server) admit(w http.ResponseWriter, way adminWay) OwnerAccess {
	session, page := s.owners.Admit()
	s.setAdminCookie(w, way, session)
	return OwnerAccess{Access: "session", Page: page, Plain: way.plain}
}

func (s *Server) ownerOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ownerAccess(r).Access != "session" {
			refuse(w, http.StatusUnauthorized, "login", "Log in first: run hermes-mobile admin on the server's machine.")
			return
		}
		next.ServeHTTP(w, r.WithContext(audit.With(r.Context(), s.adminActor(r))))
	})
}

// adminActor is who acts in the admin UI.
func (s *Server) adminActor(r *http.Request) audit.By {
	return audit.By{Actor: audit.ActorAdmin, Origin: s.clientAddress(r)}
}

// adminReads reports whether a request that is not of the page itself has the cookie of an owner's session.
func (s *Server) adminReads(r *http.Request) bool {
	way, ok := s.adminWay(r)
	return ok && way.usable() && s.fromOwnPage(r, true) && s.owners.Holds(r, s.adminCookie(way))
}

// port is that of the listener.
func (s *Server) port() string {
	_, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return ""
	}
	return port
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failure{code, message})
}
