package server

import (
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/web"
)

// ownerHeader is sent by the owner's page with each request. A page of another origin cannot send it without asking first, and
// is never allowed to.
const ownerHeader = "X-Hermes-Mobile-Admin"

// OwnerAccess says how far the one who asks gets.
type OwnerAccess struct {
	// Access is "here" on this machine, "session" after a login, "login" where one is possible, "encrypt" where it is only by https.
	Access string `json:"access"`
	// Plain: the token and what the page shows cross the network unencrypted, as the settings have it.
	Plain bool `json:"plain"`
}

// ownerPage serves the owner's page and what it asks for. Without MOBILE_ADMIN_TOKEN there is nothing here for other machines.
func (s *Server) ownerPage() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+web.OwnerPath, s.page)
	mux.HandleFunc("GET "+web.OwnerPath+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, web.OwnerPath, http.StatusPermanentRedirect)
	})
	mux.Handle(web.OwnerPath+"/api/", http.StripPrefix(web.OwnerPath+"/api", s.ownerAPI()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.AdminToken == "" && !access.FromHere(r, s.proxies) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// ownerAddress is where the owner's page opens, on this machine if it does there; empty where it does nowhere.
func (s *Server) ownerAddress() string {
	if u, err := url.Parse(s.localBase()); err == nil {
		if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
			return u.String() + web.OwnerPath
		}
	}
	if s.cfg.AdminToken == "" {
		return ""
	}
	base, _ := s.publicBase()
	return base + web.OwnerPath
}

// ownerAPI lets nobody through to the admin interface but the owner, on the owner's page.
func (s *Server) ownerAPI() http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /session", func(w http.ResponseWriter, r *http.Request) { answer(w, s.ownerAccess(r), nil) })
	open.HandleFunc("POST /login", s.ownerLogin)
	open.HandleFunc("POST /logout", s.ownerLogout)
	open.Handle("/", s.ownerOnly(s.ownerRoutes()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Header.Get(ownerHeader) == "" {
			refuse(w, http.StatusForbidden, "foreign", "This is for the owner's page only.")
			return
		}
		if r.Method != http.MethodGet && !s.fromOwnPage(r) {
			refuse(w, http.StatusForbidden, "foreign", "Only the owner's page itself may change something. Behind a proxy, it must pass on Host and X-Forwarded-Proto.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		open.ServeHTTP(w, r)
	})
}

// fromOwnPage reports whether a page of this server makes a change, and no other page in the owner's browser.
func (s *Server) fromOwnPage(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return false
	}
	// Behind a proxy that does not name the scheme the page is at the address of the settings.
	return access.SameOrigin(r, s.base(r)) || !access.FromHere(r, s.proxies) && access.SameOrigin(r, s.cfg.PublicURL)
}

// ownerAccess decides how far a request gets.
func (s *Server) ownerAccess(r *http.Request) OwnerAccess {
	if access.FromHere(r, s.proxies) {
		return OwnerAccess{Access: "here"}
	}
	encrypted := s.reachedEncrypted(r)
	if !encrypted && !s.plainByChoice() {
		return OwnerAccess{Access: "encrypt"}
	}
	a := OwnerAccess{Access: "login", Plain: !encrypted}
	if c, err := r.Cookie(ownerCookie(encrypted)); err == nil && s.owners.holds(c.Value) {
		a.Access = "session"
	}
	return a
}

// reachedEncrypted reports whether the client came by https, to us or to a proxy that is believed.
func (s *Server) reachedEncrypted(r *http.Request) bool {
	return strings.HasPrefix(s.base(r), "https://")
}

// plainByChoice: the owner gave an http address as the public one, as inside a VPN.
func (s *Server) plainByChoice() bool { return strings.HasPrefix(s.cfg.PublicURL, "http://") }

func (s *Server) ownerOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch s.ownerAccess(r).Access {
		case "here", "session":
			next.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusUnauthorized, "login", "Log in with the admin token first.")
		}
	})
}

// ownerLogin takes the admin token. Wrong ones count like wrong tokens of devices.
func (s *Server) ownerLogin(w http.ResponseWriter, r *http.Request) {
	addr, _ := access.Client(r, s.proxies)
	if after, blocked := s.guard.Blocked(addr); blocked {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())+1))
		s.turned.note(addr, http.StatusTooManyRequests, "too many wrong tokens")
		refuse(w, http.StatusTooManyRequests, "rate_limited", "Too many wrong tokens came from this address: wait before the next try.")
		return
	}
	encrypted := s.reachedEncrypted(r)
	if !encrypted && !s.plainByChoice() {
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
	if token := s.cfg.AdminToken.Reveal(); token == "" || !sameSecret(in.Token, token) {
		s.guard.Wrong(addr)
		s.turned.note(addr, http.StatusUnauthorized, "a wrong admin token")
		refuse(w, http.StatusUnauthorized, "wrong_token", "This is not the admin token.")
		return
	}
	if !encrypted {
		s.log.Warn("the owner logged in over plain http: the admin token crossed the network unencrypted", "addr", addr)
	} else {
		s.log.Info("the owner logged in", "addr", addr)
	}
	setOwnerCookie(w, s.owners.open(), encrypted)
	answer(w, OwnerAccess{Access: "session", Plain: !encrypted}, nil)
}

func (s *Server) ownerLogout(w http.ResponseWriter, r *http.Request) {
	encrypted := s.reachedEncrypted(r)
	if c, err := r.Cookie(ownerCookie(encrypted)); err == nil {
		s.owners.end(c.Value)
	}
	setOwnerCookie(w, "", encrypted)
	answer(w, nil, nil)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failure{code, message})
}
