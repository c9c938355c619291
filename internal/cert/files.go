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

// lookEvery is how often the files are read for a change. Reading them is the only sign that holds on every file system,
// and for links that others put elsewhere.
const lookEvery = 10 * time.Second

// pair is a certificate as it was read.
type pair struct {
	cert, key []byte
	tls       *tls.Certificate
	chain     []*x509.Certificate // of tls
}

// files takes the certificate from two files that another program writes.
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
		s.every = lookEvery
	}
	p, err := s.read()
	if err != nil {
		return nil, err
	}
	s.take(p)
	return s, nil
}

// read reads both files. An error says which one is wrong.
func (s *files) read() (*pair, error) {
	p := &pair{}
	var err error
	if p.cert, err = os.ReadFile(s.certFile); err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w; see MOBILE_TLS_CERT and the mode of the file", err)
	}
	if p.key, err = os.ReadFile(s.keyFile); err != nil {
		return nil, fmt.Errorf("the certificate's key cannot be read: %w; see MOBILE_TLS_KEY and the mode of the file", err)
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
		return nil, fmt.Errorf("%s: the first certificate must be the server's, and the key in %s belongs to the one at place %d: put that one first, then the one that signed it, and so on", s.certFile, s.keyFile, n)
	}
	if err != nil {
		return nil, fmt.Errorf("%s and %s are no certificate with its key: %w; the first holds the certificate with its chain, the second the key of the same certificate, both as PEM",
			s.certFile, s.keyFile, err)
	}
	p.tls, p.chain = &c, parsed(&c)
	return p, nil
}

func (s *files) take(p *pair) {
	s.use.Store(p)
	leaf := p.tls.Leaf
	for _, text := range s.faults() {
		s.log.Warn("certificate chain incomplete or damaged: phones may refuse the server", "file", s.certFile, "reason", text)
	}
	if s.now().After(leaf.NotAfter) {
		s.log.Warn("the certificate has expired: phones refuse it until its file is renewed", "file", s.certFile, "not_after", leaf.NotAfter)
		return
	}
	s.log.Info("a certificate was read", "file", s.certFile, "names", namesOf(leaf), "not_after", leaf.NotAfter)
}

// look reads the files and takes what is new. With a broken pair the old one stays.
func (s *files) look() error {
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
		err := s.look()
		if err == nil {
			failed = 0
			s.fault.set(nil)
		} else if failed++; failed > 1 && s.fault.set(err) { // once may be the moment between two writes
			s.log.Error("the certificate was not read again, the old one stays in use", "error", err)
		}
	}
}

func (s *files) reload() error {
	err := s.look()
	s.fault.set(err)
	if err != nil {
		return fmt.Errorf("the certificate stays as it was: %w", err)
	}
	return nil
}

// faults are those of the chain in use, at this moment.
func (s *files) faults() []string { return ChainFaults(s.use.Load().chain, s.roots, s.now()) }

func (s *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p := s.use.Load(); p != nil {
		return p.tls, nil
	}
	return nil, errors.New("there is no certificate")
}

func (s *files) current() *x509.Certificate                        { return s.use.Load().tls.Leaf }
func (s *files) fingerprint() string                               { return "" }
func (s *files) challenge(http.ResponseWriter, *http.Request) bool { return false }
func (s *files) close()                                            {}
