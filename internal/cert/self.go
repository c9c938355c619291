package cert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	authorityYears = 10
	leafDays       = 365
	renewDays      = 30 // before the end
	checkEvery     = time.Minute
)

// self uses the server's own CA. Phones pin the CA, so the server can renew its certificate and change the names in
// it at any time.
type self struct {
	dir   string
	hosts []string
	names func() []string
	log   *slog.Logger
	now   func() time.Time
	every time.Duration
	fault *fault

	ca  *authority
	mu  sync.Mutex // one check at a time
	use atomic.Pointer[tls.Certificate]
}

func openSelf(o Options, f *fault) (*self, error) {
	s := &self{hosts: o.Hosts, names: o.names, log: o.Log, now: o.now, every: o.every, fault: f}
	if s.names == nil {
		s.names = machineNames
	}
	if s.every == 0 {
		s.every = checkEvery
	}
	var err error
	if s.dir, err = makeFolder(o.Data); err != nil {
		return nil, err
	}
	if s.ca, err = openAuthority(s.dir, s.now(), s.log); err != nil {
		return nil, err
	}
	leaf, err := readLeaf(s.dir)
	if err != nil {
		s.log.Warn("certificate unreadable, creating a new one", "err", err)
	} else if leaf != nil {
		s.use.Store(leaf)
		if err := protect(filepath.Join(s.dir, leafKey), s.log); err != nil {
			return nil, err
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// check creates a new certificate if the present one is unsuitable.
func (s *self) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := sorted(append(s.names(), s.hosts...))
	why := s.lacking(wanted)
	if why == "" {
		return nil
	}
	leaf, err := s.ca.issue(wanted, s.now())
	if err != nil {
		return err
	}
	if err := writeLeaf(s.dir, leaf); err != nil {
		return fmt.Errorf("store the server's certificate: %w", err)
	}
	s.use.Store(leaf)
	s.log.Info("certificate created", "reason", why, "names", namesOf(leaf.Leaf), "not_after", leaf.Leaf.NotAfter)
	return nil
}

// lacking returns why the certificate must be replaced. It is empty if the certificate is suitable.
func (s *self) lacking(wanted []string) string {
	c := s.use.Load()
	switch {
	case c == nil:
		return "no certificate"
	case c.Leaf.CheckSignatureFrom(s.ca.cert) != nil || len(c.Certificate) != 2 || string(c.Certificate[1]) != string(s.ca.cert.Raw):
		return "other CA"
	case s.now().AddDate(0, 0, renewDays).After(c.Leaf.NotAfter):
		return "expires soon"
	}
	for _, name := range wanted {
		if c.Leaf.VerifyHostname(name) != nil {
			return "missing name " + name
		}
	}
	return ""
}

func (s *self) run(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.reload()
		}
	}
}

func (s *self) reload() error {
	err := s.check()
	if s.fault.set(err) && err != nil {
		s.log.Error("creating a certificate failed, keeping the old one", "err", err)
	}
	return err
}

func (s *self) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.use.Load(), nil }
func (s *self) current() *x509.Certificate                         { return s.use.Load().Leaf }
func (s *self) fingerprint() string                                { return sum(s.ca.cert) }
func (s *self) challenge(http.ResponseWriter, *http.Request) bool  { return false }
func (s *self) close()                                             {}
