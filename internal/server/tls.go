package server

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/cert"
)

// openCertificate comes by a certificate, and makes the listener take TLS. Without TLS it does nothing.
func (s *Server) openCertificate() error {
	if s.cfg.TLS == cert.Off {
		return nil
	}
	var hosts []string
	for _, h := range []string{s.cfg.PublicHost(), s.cfg.Host} {
		if h != "" {
			hosts = append(hosts, strings.TrimSuffix(strings.ToLower(h), "."))
		}
	}
	c, err := cert.Open(cert.Options{Mode: s.cfg.TLS, Data: s.cfg.Data, Log: s.log, Hosts: hosts, Email: s.cfg.TLSEmail, Directory: s.cfg.TLSACME,
		RootFile: s.cfg.TLSACMERoot, Host: s.cfg.Host, Port: s.listener.Addr().(*net.TCPAddr).Port, CertFile: s.cfg.TLSCert, KeyFile: s.cfg.TLSKey})
	if err != nil {
		return err
	}
	s.certs = c
	s.listener = newOnePort(s.listener, c.TLS(), firstByteTimeout)
	return nil
}

// Certificate says how the server's certificate is.
func (s *Server) Certificate() cert.State {
	if s.certs == nil {
		return cert.State{Mode: cert.Off}
	}
	return s.certs.State()
}

// fingerprint is what phones pin; empty where they need not.
func (s *Server) fingerprint() string {
	if s.certs == nil {
		return ""
	}
	return s.certs.Fingerprint()
}

// scheme is how this server is reached itself, without a proxy.
func (s *Server) scheme() string {
	if s.certs == nil {
		return "http"
	}
	return "https"
}

// encrypted lets plain requests through from this machine only, where TLS is on: the gateway beside us and a proxy on this
// machine speak plain HTTP. A person's browser is shown the way.
func (s *Server) encrypted(next http.Handler) http.Handler {
	if s.certs == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			if s.cfg.TLS == cert.Auto { // the others may lack a certificate that browsers trust, or be given up again
				w.Header().Set("Strict-Transport-Security", "max-age=31536000")
			}
			next.ServeHTTP(w, r)
			return
		}
		if s.certs.Challenge(w, r) {
			return
		}
		peer, err := access.Peer(r)
		switch {
		case err == nil && peer.IsLoopback():
			next.ServeHTTP(w, r)
		case (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == "" && r.Host != "":
			http.Redirect(w, r, "https://"+r.Host+r.URL.RequestURI(), http.StatusPermanentRedirect)
		default:
			w.Header().Set("Connection", "close")
			http.Error(w, "This server takes encrypted connections only: use https or wss.", http.StatusForbidden)
		}
	})
}

// localBase is the address for programs on this machine, such as a gateway; empty where plain HTTP does not reach it.
func (s *Server) localBase() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return ""
	}
	ip := net.ParseIP(host)
	if ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	} else if s.certs != nil && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	return "http://" + net.JoinHostPort(host, port)
}

// handshakes keeps failed handshakes out of the log, which anybody who scans a port brings about.
type handshakes struct {
	log *slog.Logger
}

// Write logs a line of the HTTP server.
func (h handshakes) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = slog.LevelDebug
	}
	// An attribute, since the message is what lines are counted by.
	h.log.Log(context.Background(), level, "http server", "reason", strings.TrimSpace(string(line)))
	return len(line), nil
}
