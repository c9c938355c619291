package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/ratelimit"
	"hermes-mobile/internal/strangers"
)

// Bounds of connections that have not authenticated.
const (
	maxStrangers       = 1000
	strangersOfNetwork = 64
	strangerMemory     = 32 << 20
	// strangerGrace is long enough for a hello on a slow network, and short enough that a flood
	// delays others by little.
	strangerGrace = 500 * time.Millisecond
	// spareFiles is how many open files connections leave to the database, files of devices, the
	// gateway and the log.
	spareFiles = 128
)

// keepAlive is longer than proxies keep an idle connection (Caddy: 2 min). Otherwise they would
// send requests on connections that the server is closing.
const keepAlive = 3 * time.Minute

// listen opens the port of the settings.
func listen(cfg *config.Config) (net.Listener, error) {
	network := "tcp"
	if ip := net.ParseIP(cfg.Host); ip != nil && ip.To4() != nil {
		network = "tcp4" // or 0.0.0.0 would include all IPv6 addresses
	}
	l, err := net.Listen(network, net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w%s; stop the program that uses the port, or choose another with --port or MOBILE_PORT", err, holder(err, cfg.Host, cfg.Port))
	}
	return l, nil
}

// holder names the program that uses the port, if that is the reason for err.
func holder(err error, host string, port int) string {
	if doctor.InUse(err) {
		if name := doctor.PortHolder(host, port); name != "" {
			return " by " + name
		}
	}
	return ""
}

// listenAdmin opens the admin socket. The socket also keeps a second server off the same data
// folder.
func listenAdmin(ctx context.Context, data string) (net.Listener, error) {
	path := filepath.Join(data, AdminSocket)
	var d net.Dialer
	if c, err := d.DialContext(ctx, "unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("a server is already running on the data folder %s: stop it, or choose another folder with --data", data)
	}
	_ = os.Remove(path) // left by a server that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		if len(path) > 100 {
			return nil, fmt.Errorf("cannot open the admin socket: %w; the path of the data folder is too long, choose a shorter one with --data", err)
		}
		return nil, fmt.Errorf("cannot write to the data folder: %w; check its mode and owner, or choose another folder with --data", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect the admin socket: %w", err)
	}
	return l, nil
}

// boundStrangers bounds the cost of connections that have not authenticated, and leaves the process
// files to open. limit is how many files it may open, 0 if that isn't known.
func boundStrangers(l net.Listener, limit int, proxies access.Proxies, m *metrics.Set) *strangers.Listener {
	open := 0
	if limit > 0 {
		open = max(limit-spareFiles, limit/2)
	}
	return strangers.Listen(l, strangers.Options{Total: maxStrangers, PerNetwork: strangersOfNetwork, Memory: strangerMemory, Open: open, Grace: strangerGrace,
		NetworkOf: func(addr netip.Addr) (netip.Prefix, bool) {
			// A trusted proxy stands for many clients. If it names no other address, as for
			// programs of this machine, nothing tells them apart.
			return ratelimit.Network(addr), !proxies.Trusts(addr)
		},
		Changed: func(count int, bytes int64) {
			m.Strangers.Set(float64(count))
			m.StrangerBytes.Set(float64(bytes))
		},
		Dropped: func(r strangers.Reason) { m.StrangersDropped.WithLabelValues(string(r)).Inc() }})
}

// openCertificate loads or requests the certificate for a listener. It returns nil without TLS.
func openCertificate(cfg *config.Config, l net.Listener, log *slog.Logger) (*cert.Certificates, error) {
	if cfg.TLS == cert.Off {
		return nil, nil
	}
	var hosts []string
	for _, h := range []string{cfg.PublicHost(), cfg.Host} {
		if h != "" {
			hosts = append(hosts, strings.TrimSuffix(strings.ToLower(h), "."))
		}
	}
	return cert.Open(cert.Options{Mode: cfg.TLS, Data: cfg.Data, Log: log, Hosts: hosts, Email: cfg.TLSEmail, Directory: cfg.TLSACME,
		RootFile: cfg.TLSACMERoot, Host: cfg.Host, Port: l.Addr().(*net.TCPAddr).Port, CertFile: cfg.TLSCert, KeyFile: cfg.TLSKey})
}

// encrypted requires TLS if there are certificates. Plain HTTP passes from this machine only: the
// gateway and a proxy on this machine use it. It redirects a browser to https.
func encrypted(certs *cert.Certificates, mode string, next http.Handler) http.Handler {
	if certs == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			if mode == cert.Auto { // in other modes browsers may not trust the certificate, or the owner may turn TLS off again
				w.Header().Set("Strict-Transport-Security", "max-age=31536000")
			}
			next.ServeHTTP(w, r)
			return
		}
		if certs.Challenge(w, r) {
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
			http.Error(w, "This server accepts encrypted connections only: use https or wss.", http.StatusForbidden)
		}
	})
}

// newHTTPServer returns an HTTP server with our limits.
func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: keepAlive, MaxHeaderBytes: 32 << 10,
		ErrorLog: stdlog.New(serverErrors{log}, "", 0)}
}

// serverErrors logs the lines of an HTTP server. Failed handshakes are debug lines, since any port
// scan causes them.
type serverErrors struct{ log *slog.Logger }

// Write logs a line.
func (e serverErrors) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = slog.LevelDebug
	}
	// The text is an attribute, because the log is sampled by message.
	e.log.Log(context.Background(), level, "http server", "reason", strings.TrimSpace(string(line)))
	return len(line), nil
}

// ignoreClosed returns nil for the errors of an orderly stop.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
