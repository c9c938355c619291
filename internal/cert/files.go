package cert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/plaintext"
)

// pollEvery is how often the server reads the files to detect a change. Nothing else is reliable on every file
// system and with symbolic links.
const pollEvery = 10 * time.Second

// pair is a certificate as it was read.
type pair struct {
	cert, key []byte
	tls       *tls.Certificate
	chain     []*x509.Certificate // of tls
}

// files reads the certificate from two files that another program writes.
type files struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time
	every             time.Duration
	fault             *fault
	roots             *x509.CertPool // nil: those of the system

	mu  sync.Mutex // one reading at a time
	use atomic.Pointer[pair]
}

func openFiles(o Options, f *fault) (*files, error) {
	s := &files{certFile: o.CertFile, keyFile: o.KeyFile, log: o.Log, now: o.now, every: o.every, fault: f}
	if s.every == 0 {
		s.every = pollEvery
	}
	p, err := s.read()
	if err != nil {
		return nil, err
	}
	s.take(p)
	return s, nil
}

// read reads both files. An error names the wrong one.
func (s *files) read() (*pair, error) {
	p := &pair{}
	var err error
	if p.cert, err = os.ReadFile(s.certFile); err != nil {
		return nil, fmt.Errorf("read the certificate (MOBILE_TLS_CERT): %w", err)
	}
	if p.key, err = os.ReadFile(s.keyFile); err != nil {
		return nil, fmt.Errorf("read the private key (MOBILE_TLS_KEY): %w", err)
	}
	for file, text := range map[string]*[]byte{s.certFile: &p.cert, s.keyFile: &p.key} {
		if *text, err = plaintext.Trim(*text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if used := s.use.Load(); used != nil && bytes.Equal(used.cert, p.cert) && bytes.Equal(used.key, p.key) {
		return used, nil
	}
	c, err := tls.X509KeyPair(p.cert, p.key)
	if n := placeOf(p.cert, p.key); err != nil && n > 1 {
		return nil, fmt.Errorf("%s: the first certificate must be the server's, but the key in %s belongs to certificate %d: put that one first, then its signer, and so on", s.certFile, s.keyFile, n)
	}
	if err != nil {
		return nil, fmt.Errorf("%s and %s are not a certificate and its key: %w; the first must contain the certificate and its chain, the second its private key, both as PEM",
			s.certFile, s.keyFile, err)
	}
	p.tls, p.chain = &c, parsed(&c)
	return p, nil
}

func (s *files) take(p *pair) {
	s.use.Store(p)
	leaf := p.tls.Leaf
	for _, text := range s.faults() {
		s.log.Warn("certificate chain incomplete or damaged: phones may reject the server", "file", s.certFile, "reason", text)
	}
	if s.now().After(leaf.NotAfter) {
		s.log.Warn("certificate expired: phones reject it", "file", s.certFile, "not_after", leaf.NotAfter)
		return
	}
	s.log.Info("certificate loaded", "file", s.certFile, "names", namesOf(leaf), "not_after", leaf.NotAfter)
}

// check reads the files and uses a new pair. If the new pair is invalid, the old one stays.
func (s *files) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.read()
	if err == nil && p != s.use.Load() {
		s.take(p)
	}
	return err
}

func (s *files) run(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.check()
		if err == nil {
			failed = 0
			s.fault.set(nil)
		} else if failed++; failed > 1 && s.fault.set(err) { // a single failure may be the moment between two writes
			s.log.Error("certificate reload failed, keeping the old one", "err", err)
		}
	}
}

func (s *files) reload() error {
	err := s.check()
	s.fault.set(err)
	if err != nil {
		return fmt.Errorf("reload the certificate (the old one stays in use): %w", err)
	}
	return nil
}

// faults returns the present problems of the chain in use.
func (s *files) faults() []string { return ChainFaults(s.use.Load().chain, s.roots, s.now()) }

func (s *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p := s.use.Load(); p != nil {
		return p.tls, nil
	}
	return nil, errors.New("no certificate")
}

func (s *files) current() *x509.Certificate                        { return s.use.Load().tls.Leaf }
func (s *files) fingerprint() string                               { return "" }
func (s *files) challenge(http.ResponseWriter, *http.Request) bool { return false }
func (s *files) close()                                            {}
