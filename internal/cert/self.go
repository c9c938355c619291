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

// self is a small authority of the server's own. Phones pin the authority, so that the certificate below it can be
// renewed, and get other names, as often as it likes.
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
		s.log.Warn("the server's certificate is made anew; paired phones go on", "because", err)
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

// check makes a new certificate where the present one does not do.
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
		return fmt.Errorf("the server's certificate cannot be stored: %w", err)
	}
	s.use.Store(leaf)
	s.log.Info("a certificate was made", "because", why, "names", namesOf(leaf.Leaf), "not_after", leaf.Leaf.NotAfter)
	return nil
}

// lacking says why the certificate must be made anew; empty: it does.
func (s *self) lacking(wanted []string) string {
	c := s.use.Load()
	switch {
	case c == nil:
		return "there is none"
	case c.Leaf.CheckSignatureFrom(s.ca.cert) != nil || len(c.Certificate) != 2 || string(c.Certificate[1]) != string(s.ca.cert.Raw):
		return "it is of another authority"
	case s.now().AddDate(0, 0, renewDays).After(c.Leaf.NotAfter):
		return "it ends soon"
	}
	for _, name := range wanted {
		if c.Leaf.VerifyHostname(name) != nil {
			return "it lacks " + name
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
		s.log.Error("no new certificate could be made, the old one stays in use", "error", err)
	}
	return err
}

func (s *self) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.use.Load(), nil }
func (s *self) current() *x509.Certificate                         { return s.use.Load().Leaf }
func (s *self) fingerprint() string                                { return sum(s.ca.cert) }
func (s *self) challenge(http.ResponseWriter, *http.Request) bool  { return false }
func (s *self) close()                                             {}
