// Package cert keeps the certificate that the server shows to phones: one of an ACME authority, one of a small authority of
// its own, or one from files that somebody else writes. It is the only package that speaks to certmagic.
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

// The modes, as MOBILE_TLS has them.
const (
	Off   = "off"
	Auto  = "auto"
	Self  = "self"
	Files = "files"
)

// Folder is the name of the folder for certificates in the data folder.
const Folder = "certificates"

// Options say which certificate is wanted.
type Options struct {
	Mode string // Auto, Self or Files
	Data string // the data folder
	Log  *slog.Logger

	// Hosts are the names and addresses by which phones reach the server, besides those of the machine itself. Auto takes
	// the first one.
	Hosts []string

	// For Auto.
	Email     string // for the authority to write to; may be empty
	Directory string // URL of the ACME directory
	RootFile  string // certificates that the ACME server's own is checked by; empty: those of the system
	Host      string // the address that the server listens on
	Port      int    // its port

	// For Files.
	CertFile, KeyFile string

	now   func() time.Time // for tests; nil: time.Now
	every time.Duration    // for tests: between two looks; 0: as the mode needs
	retry time.Duration    // for tests: before the second try of Auto; 0: firstRetry
	names func() []string  // for tests: names and addresses of the machine; nil: the real ones
}

// State is how the certificate is: for the owner, and for health checks.
type State struct {
	Mode        string    `json:"mode"`
	Names       []string  `json:"names,omitempty"`       // of the certificate in use
	NotAfter    time.Time `json:"not_after,omitzero"`    // its end; zero: there is none yet
	Leaf        string    `json:"certificate,omitempty"` // its SHA-256
	Fingerprint string    `json:"fingerprint,omitempty"` // what phones pin: the SHA-256 of the own authority
	Chain       []string  `json:"chain,omitempty"`       // what is wrong with it as phones see it, in sentences
	LastError   string    `json:"last_error,omitempty"`  // of making, renewing or reading; empty since that worked again
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// String says it in a line.
func (s State) String() string {
	text := s.Mode
	switch {
	case s.Mode == Off:
		return text
	case s.NotAfter.IsZero():
		text += ", no certificate yet"
	case s.Fingerprint != "":
		text += ", until " + s.NotAfter.Local().Format(time.DateOnly) + " and renewed by itself, fingerprint " + s.Fingerprint
	default:
		text += ", until " + s.NotAfter.Local().Format(time.DateOnly) + ", for " + strings.Join(s.Names, ", ")
	}
	if s.LastError != "" {
		text += " (" + s.LastErrorAt.Local().Format(time.DateTime) + ": " + s.LastError + ")"
	}
	return text
}

// source is one way to come by a certificate.
type source interface {
	get(*tls.ClientHelloInfo) (*tls.Certificate, error)
	current() *x509.Certificate // nil: none yet
	fingerprint() string
	run(context.Context)
	reload() error
	challenge(http.ResponseWriter, *http.Request) bool
	close()
}

// Certificates hands out the server's certificate. Close it in the end.
type Certificates struct {
	mode   string
	source source
	fault  *fault
}

// Open reads or makes what is needed. With Auto the certificate may come later: see Run.
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
		err = fmt.Errorf("there is no way %q to come by a certificate", o.Mode)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// makeFolder makes the folder for certificates and returns its path.
func makeFolder(data string) (string, error) {
	dir := filepath.Join(data, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the folder for certificates cannot be made: %w", err)
	}
	return dir, os.Chmod(dir, 0o700)
}

// TLS returns the settings for connections. They offer HTTP/1.1 alone, which WebSocket upgrades need.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.source.get, NextProtos: append([]string{"http/1.1"}, c.protocols()...)}
}

// protocols are those of an ACME authority, on which nothing is ever said after the handshake.
func (c *Certificates) protocols() []string {
	if c.mode == Auto {
		return []string{acmeProtocol}
	}
	return nil
}

// Silent returns what closes connections that were made only to see a certificate, for http.Server.TLSNextProto.
func (c *Certificates) Silent() map[string]func(*http.Server, *tls.Conn, http.Handler) {
	m := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	for _, p := range c.protocols() {
		m[p] = func(_ *http.Server, conn *tls.Conn, _ http.Handler) { _ = conn.Close() }
	}
	return m
}

// Run obtains, renews and reads again until ctx ends.
func (c *Certificates) Run(ctx context.Context) { c.source.run(ctx) }

// Reload looks at once whether there is another certificate to use.
func (c *Certificates) Reload() error { return c.source.reload() }

// Challenge answers a request by which an ACME authority checks that this server has the name. It reports whether the
// request was one.
func (c *Certificates) Challenge(w http.ResponseWriter, r *http.Request) bool {
	return c.source.challenge(w, r)
}

// Fingerprint is what phones pin: the SHA-256 of the own authority's certificate in hex. Empty where phones need no pin.
func (c *Certificates) Fingerprint() string { return c.source.fingerprint() }

// State says how the certificate is.
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

// Close ends what Open began.
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

// fault is the last thing that went wrong, until it works again.
type fault struct {
	now  func() time.Time
	mu   sync.Mutex
	text string
	at   time.Time
}

// set notes an error, or with nil that there is none any more. It reports whether that is news.
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
