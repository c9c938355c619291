package cert

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"hermes-mobile/internal/backoff"
	"hermes-mobile/internal/plaintext"
)

// acmeProtocol is what an authority asks for when it checks by TLS-ALPN-01 (RFC 8737).
const acmeProtocol = "acme-tls/1"

// Waits between two tries for the first certificate. A server at home often starts before its network does, so the first
// is short. Renewals are tried by certmagic, in steps of its own.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 6 * time.Hour
)

// auto has the certificate from an ACME authority. Certmagic keeps, renews and hands it out.
type auto struct {
	name   string
	log    *slog.Logger
	fault  *fault
	cache  *certmagic.Cache
	config *certmagic.Config
	issuer *issuer
	life   context.Context
	end    context.CancelFunc
	closed sync.Once
	retry  time.Duration
	again  chan struct{} // asks for a try now
}

func openAuto(o Options, f *fault) (*auto, error) {
	if len(o.Hosts) == 0 {
		return nil, errors.New("there is no name to have a certificate for")
	}
	dir, err := makeFolder(o.Data)
	if err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if o.RootFile != "" {
		pem, err := os.ReadFile(o.RootFile)
		if err != nil {
			return nil, fmt.Errorf("the root of the ACME server cannot be read: %w; see MOBILE_TLS_ACME_ROOT", err)
		}
		if pem, err = plaintext.Trim(pem); err != nil {
			return nil, fmt.Errorf("%s: %w", o.RootFile, err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate: MOBILE_TLS_ACME_ROOT names a PEM file with the root of the ACME server", o.RootFile)
		}
	}
	a := &auto{name: o.Hosts[0], log: o.Log, fault: f, retry: cmp.Or(o.retry, firstRetry), again: make(chan struct{}, 1)}
	a.life, a.end = context.WithCancel(context.Background())
	logger := zapLogger(o.Log)
	a.cache = certmagic.NewCache(certmagic.CacheOptions{Logger: logger, RenewCheckInterval: o.every,
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return a.config, nil }})
	a.config = certmagic.New(a.cache, certmagic.Config{
		Storage: newStorage(dir), Logger: logger, OnEvent: a.event,
		DefaultServerName: a.name, FallbackServerName: a.name, // there is one certificate, whatever a phone asks for
		OCSP: certmagic.OCSPConfig{DisableStapling: true}, // a start must not wait for somebody's responder
	})
	a.issuer = newIssuer(a.life, a.config, o, roots)
	a.config.Issuers = []certmagic.Issuer{a.issuer}
	if _, err := a.config.CacheManagedCertificate(a.life, a.name); err == nil {
		o.Log.Info("the certificate of the last start is used", "name", a.name, "not_after", a.current().NotAfter)
	}
	return a, nil
}

// event is called by certmagic when something happened to the certificate.
func (a *auto) event(_ context.Context, what string, data map[string]any) error {
	switch what {
	case "cert_obtained":
		a.fault.set(nil)
		a.log.Info("a certificate was obtained", "name", a.name, "renewal", data["renewal"])
	case "cert_failed":
		err, _ := data["error"].(error)
		if renewal, _ := data["renewal"].(bool); renewal && a.life.Err() == nil { // else it is told by run, or the server stops
			a.fault.set(err)
			a.log.Error("the certificate was not renewed; it is tried again by itself", "name", a.name, "error", err)
		}
	}
	return nil
}

// run obtains the first certificate. When it is there, certmagic renews it.
func (a *auto) run(ctx context.Context) {
	retry := backoff.Policy{Base: a.retry, Max: lastRetry}
	for n := 0; ; n++ {
		err := a.obtain(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		a.fault.set(err)
		wait := retry.Delay(n)
		a.log.Error("there is no certificate yet; it is asked for again by itself", "name", a.name, "again_in", wait, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-a.again:
			timer.Stop()
			n = 0
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
	<-ctx.Done()
}

func (a *auto) obtain(ctx context.Context) error {
	c, err := a.config.CacheManagedCertificate(ctx, a.name)
	if err == nil {
		if c.NeedsRenewal(a.config) {
			return a.cache.RenewManagedCertificates(a.life) // it may have ended while the server was down
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("the stored certificate is damaged, another one is asked for", "name", a.name, "error", err)
		if err := a.config.Storage.Delete(ctx, certmagic.StorageKeys.CertsSitePrefix(a.issuer.IssuerKey(), a.name)); err != nil {
			return err
		}
	}
	if err := a.config.ObtainCertAsync(ctx, a.name); err != nil {
		return err
	}
	_, err = a.config.CacheManagedCertificate(ctx, a.name)
	return err
}

// reload tries now what is waited for: the first certificate, or a renewal if it is time.
func (a *auto) reload() error {
	select {
	case a.again <- struct{}{}:
	default:
	}
	return a.cache.RenewManagedCertificates(a.life)
}

func (a *auto) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return a.config.GetCertificate(hello)
}

func (a *auto) current() *x509.Certificate {
	var newest *x509.Certificate
	for _, c := range a.cache.AllMatchingCertificates(a.name) {
		if newest == nil || c.Leaf.NotAfter.After(newest.NotAfter) {
			newest = c.Leaf
		}
	}
	return newest
}

func (a *auto) fingerprint() string { return "" }

func (a *auto) challenge(w http.ResponseWriter, r *http.Request) bool {
	return a.issuer.HandleHTTPChallenge(w, r)
}

// close ends certmagic's goroutines and waits for them.
func (a *auto) close() {
	a.end()
	a.closed.Do(a.cache.Stop)
	a.issuer.wait()
}
