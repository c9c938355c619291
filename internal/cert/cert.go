// Package cert manages the server's certificate: from an ACME CA, from the server's own CA, or from
// files that another program writes. Only this package uses certmagic.
package cert

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The modes of MOBILE_TLS.
const (
	Off   = "off"
	Auto  = "auto"
	Self  = "self"
	Files = "files"
)

// Folder is the name of the folder for certificates in the data folder.
const Folder = "certificates"

// Options configures the certificate.
type Options struct {
	Mode string // Auto, Self, or Files
	Data string // the data folder
	Log  *slog.Logger

	// Hosts are the names and addresses by which phones reach the server, besides those of the
	// machine itself. Auto uses the first one.
	Hosts []string

	// For Auto.
	Email     string // contact for the CA; may be empty
	Directory string // URL of the ACME directory
	RootFile  string // root certificates for the ACME server; empty: the system's
	Host      string // the address that the server listens on
	Port      int    // its port

	// For Files.
	CertFile, KeyFile string

	now   func() time.Time // for tests; nil: time.Now
	every time.Duration    // for tests: between two checks; 0: the mode's default
	retry time.Duration    // for tests: before the second attempt of Auto; 0: firstRetry
	names func() []string  // for tests: names and addresses of the machine; nil: the real ones
}

// State is the state of the certificate, for the owner and for health checks.
type State struct {
	Mode        string    `json:"mode"`
	Names       []string  `json:"names,omitempty"`       // of the certificate in use
	NotAfter    time.Time `json:"not_after,omitzero"`    // end of its validity; zero: none yet
	Leaf        string    `json:"certificate,omitempty"` // its SHA-256
	Fingerprint string    `json:"fingerprint,omitempty"` // the SHA-256 of the server's own CA, which phones pin
	Chain       []string  `json:"chain,omitempty"`       // problems of the chain as phones see it
	LastError   string    `json:"last_error,omitempty"`  // of creating, renewing, or reading; empty after a success
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// String formats the state in one line.
func (s State) String() string {
	text := s.Mode
	switch {
	case s.Mode == Off:
		return text
	case s.NotAfter.IsZero():
		text += ", no certificate yet"
	case s.Fingerprint != "":
		text += ", until " + s.NotAfter.Local().Format(time.DateOnly) + ", renewed automatically, fingerprint " + s.Fingerprint
	default:
		text += ", until " + s.NotAfter.Local().Format(time.DateOnly) + ", for " + strings.Join(s.Names, ", ")
	}
	if s.LastError != "" {
		text += " (" + s.LastErrorAt.Local().Format(time.DateTime) + ": " + s.LastError + ")"
	}
	return text
}

// source is a source of the certificate.
type source interface {
	get(*tls.ClientHelloInfo) (*tls.Certificate, error)
	current() *x509.Certificate // nil: none yet
	fingerprint() string
	run(context.Context)
	reload() error
	challenge(http.ResponseWriter, *http.Request) bool
	close()
}

// Certificates provides the server's certificate. Call Close when done.
type Certificates struct {
	mode   string
	source source
	fault  *fault
}

// Open reads or creates the certificate. With Auto, Run may obtain it later.
func Open(o Options) (*Certificates, error) {
	if o.now == nil {
		o.now = time.Now
	}
	c := &Certificates{mode: o.Mode, fault: &fault{now: o.now}}
	var err error
	switch o.Mode {
	case Auto:
		c.source, err = openAuto(o, c.fault)
	case Self:
		c.source, err = openSelf(o, c.fault)
	case Files:
		c.source, err = openFiles(o, c.fault)
	default:
		err = fmt.Errorf("unknown TLS mode %q", o.Mode)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// makeFolder creates the folder for certificates and returns its path.
func makeFolder(data string) (string, error) {
	dir := filepath.Join(data, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the folder for certificates: %w", err)
	}
	return dir, os.Chmod(dir, 0o700)
}

// TLS returns the configuration for connections. It offers only HTTP/1.1, which WebSocket upgrades
// need.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.source.get, NextProtos: append([]string{"http/1.1"}, c.protocols()...)}
}

// protocols are the ALPN protocols of an ACME CA, which sends nothing after the handshake.
func (c *Certificates) protocols() []string {
	if c.mode == Auto {
		return []string{acmeProtocol}
	}
	return nil
}

// Silent returns handlers for http.Server.TLSNextProto that close connections made only to see a certificate.
func (c *Certificates) Silent() map[string]func(*http.Server, *tls.Conn, http.Handler) {
	m := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	for _, p := range c.protocols() {
		m[p] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) { _ = conn.Close() }
	}
	return m
}

// Run obtains, renews, and reloads the certificate until ctx ends.
func (c *Certificates) Run(ctx context.Context) { c.source.run(ctx) }

// Reload checks immediately for a new certificate.
func (c *Certificates) Reload() error { return c.source.reload() }

// Challenge answers an HTTP challenge of an ACME CA. It reports whether the request was one.
func (c *Certificates) Challenge(w http.ResponseWriter, r *http.Request) bool {
	return c.source.challenge(w, r)
}

// Fingerprint returns the SHA-256 of the certificate of the server's own CA in hex. Phones pin it.
// It is empty if phones need no pin.
func (c *Certificates) Fingerprint() string { return c.source.fingerprint() }

// State returns the state of the certificate.
func (c *Certificates) State() State {
	s := State{Mode: c.mode, Fingerprint: c.source.fingerprint()}
	s.LastError, s.LastErrorAt = c.fault.last()
	if leaf := c.source.current(); leaf != nil {
		s.Names, s.NotAfter, s.Leaf = namesOf(leaf), leaf.NotAfter.UTC(), sum(leaf)
	}
	if f, ours := c.source.(*files); ours {
		s.Chain = f.faults()
	}
	return s
}

// Close stops the background work of Open.
func (c *Certificates) Close() { c.source.close() }

func sum(c *x509.Certificate) string {
	h := sha256.Sum256(c.Raw)
	return hex.EncodeToString(h[:])
}

func namesOf(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// fault is the last error, until the next success.
type fault struct {
	now  func() time.Time
	mu   sync.Mutex
	text string
	at   time.Time
}

// set records an error, or clears it with nil. It reports whether that is a change.
func (f *fault) set(err error) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		news = f.text != ""
		f.text, f.at = "", time.Time{}
		return news
	}
	news = f.text != err.Error()
	f.text, f.at = err.Error(), f.now().UTC().Truncate(time.Second)
	return news
}

func (f *fault) last() (string, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text, f.at
}
