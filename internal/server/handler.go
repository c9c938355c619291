package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/web"
)

// handler serves everything that comes over the network.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(s.cfg.Path, s.device)
	if h, ok := s.agent.(interface{ Handler() http.Handler }); ok {
		relay := h.Handler()
		mux.Handle("/relay", relay)
		mux.Handle("/relay/", relay)
	}
	mux.Handle(media.LinkPrefix, media.Handler(s.files, media.NewSigner(s.linkKey), time.Now, s.hub.MayRead))
	if s.push != nil && s.cfg.PushActions {
		mux.HandleFunc("POST "+pushActionPath, s.pushAction)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	for _, path := range s.page.Paths() {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("GET "+path, s.page)
	}
	s.mountFront(mux)
	owner := s.ownerPage()
	mux.Handle(web.OwnerPath, owner)
	mux.Handle(web.OwnerPath+"/", owner)
	return s.noteProxies(mux)
}

// device is the endpoint for devices: it turns away what need not become a connection.
func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	addr, loopback := access.Client(r, s.proxies)
	if s.probes.serve(w, r, loopback) {
		return
	}
	if r.URL.Query().Has("token") {
		s.turnAway(w, addr, http.StatusBadRequest, "a token in the address",
			"A token in the address is not accepted: it would stand in logs. Connect without it and send it in the first frame, hello.")
		return
	}
	if !access.OriginAllowed(r, s.origins) {
		s.turnAway(w, addr, http.StatusForbidden, fmt.Sprintf("a page of the origin %q, which is not listed", r.Header.Get("Origin")),
			"Pages of this origin may not connect: the owner can list it in MOBILE_ALLOWED_ORIGINS.")
		return
	}
	if after, blocked := s.guard.Blocked(addr); blocked {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())+1))
		s.turnAway(w, addr, http.StatusTooManyRequests, "too many wrong tokens", "Too many wrong tokens came from this address: wait before the next try.")
		return
	}
	s.hub.Accept(w, r, addr, loopback, s.base(r))
}

// turnAway answers a request that becomes no connection.
func (s *Server) turnAway(w http.ResponseWriter, addr netip.Addr, status int, why, answer string) {
	s.requests.Note("", addr, strconv.Itoa(status), why)
	s.turned.note(addr, status, why)
	http.Error(w, answer, status)
}

// base is the scheme and host by which the client reached the server, for links.
func (s *Server) base(r *http.Request) string {
	peer, err := access.Peer(r)
	return access.Base(r, err == nil && s.proxies.Trusts(peer))
}

// clientAddress names who made a request, for log and status.
func (s *Server) clientAddress(r *http.Request) string {
	addr, _ := access.Client(r, s.proxies)
	return addr.String()
}

// insider reports whether a request may read what is not for strangers: it has the metrics token, or the cookie of a login to the
// admin UI. Whatever else it looks like counts for nothing. The admin socket has its own way to the same.
func (s *Server) insider(r *http.Request) bool {
	token := s.cfg.MetricsToken.Reveal()
	return token != "" && sameSecret(bearer(r), token) || s.adminReads(r)
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !s.insider(r) {
		http.Error(w, "Metrics need MOBILE_METRICS_TOKEN as a bearer token, or a login to the admin UI. On the server's machine: hermes-mobile status --metrics", http.StatusForbidden)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.metrics.Handler().ServeHTTP(w, r)
}
