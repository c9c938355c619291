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

// acmeProtocol is the ALPN protocol of a TLS-ALPN-01 challenge (RFC 8737).
const acmeProtocol = "acme-tls/1"

// Waits between two tries for the first certificate. A server at home often starts before its network does, so the first
// is short. Renewals are tried by certmagic, in steps of its own.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 6 * time.Hour
)

// auto gets the certificate from an ACME CA. Certmagic stores, renews, and provides it.
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
	again  chan struct{} // triggers an immediate attempt
}

func openAuto(o Options, f *fault) (*auto, error) {
	if len(o.Hosts) == 0 {
		return nil, errors.New("no host name for the certificate: set MOBILE_PUBLIC_URL")
	}
	dir, err := makeFolder(o.Data)
	if err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if o.RootFile != "" {
		pem, err := os.ReadFile(o.RootFile)
		if err != nil {
			return nil, fmt.Errorf("read the root certificate of the ACME server (MOBILE_TLS_ACME_ROOT): %w", err)
		}
		if pem, err = plaintext.Trim(pem); err != nil {
			return nil, fmt.Errorf("%s: %w", o.RootFile, err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no certificate: set MOBILE_TLS_ACME_ROOT to a PEM file with the root certificate of the ACME server", o.RootFile)
		}
	}
	a := &auto{name: o.Hosts[0], log: o.Log, fault: f, retry: cmp.Or(o.retry, firstRetry), again: make(chan struct{}, 1)}
	a.life, a.end = context.WithCancel(context.Background())
	logger := zapLogger(o.Log)
	a.cache = certmagic.NewCache(certmagic.CacheOptions{Logger: logger, RenewCheckInterval: o.every,
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return a.config, nil }})
	a.config = certmagic.New(a.cache, certmagic.Config{
		Storage: newStorage(dir), Logger: logger, OnEvent: a.event,
		DefaultServerName: a.name, FallbackServerName: a.name, // the same certificate for every name that a phone requests
		OCSP: certmagic.OCSPConfig{DisableStapling: true}, // a start must not wait for an OCSP responder
	})
	a.issuer = newIssuer(a.life, a.config, o, roots)
	a.config.Issuers = []certmagic.Issuer{a.issuer}
	if _, err := a.config.CacheManagedCertificate(a.life, a.name); err == nil {
		o.Log.Info("certificate loaded", "name", a.name, "not_after", a.current().NotAfter)
	}
	return a, nil
}

// event handles certmagic's events about the certificate.
func (a *auto) event(_ context.Context, what string, data map[string]any) error {
	switch what {
	case "cert_obtained":
		a.fault.set(nil)
		a.log.Info("certificate obtained", "name", a.name, "renewal", data["renewal"])
	case "cert_failed":
		err, _ := data["error"].(error)
		if renewal, _ := data["renewal"].(bool); renewal && a.life.Err() == nil { // otherwise run reports it, or the server is stopping
			a.fault.set(err)
			a.log.Error("certificate renewal failed, retrying", "name", a.name, "err", err)
		}
	}
	return nil
}

// run obtains the first certificate. After that, certmagic renews it.
func (a *auto) run(ctx context.Context) {
	retry := backoff.Policy{Base: a.retry, Max: lastRetry}
	for n := 0; ; n++ {
		err := a.obtain(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		a.fault.set(err)
		wait := retry.Delay(n)
		a.log.Error("obtaining a certificate failed, retrying", "name", a.name, "delay", wait, "err", err)
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
			return a.cache.RenewManagedCertificates(a.life) // it may have expired while the server was down
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("stored certificate damaged, requesting a new one", "name", a.name, "err", err)
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

// reload retries immediately: the first certificate, or a renewal if it is due.
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
