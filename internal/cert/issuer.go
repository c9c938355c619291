package cert

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"
)

// issuer orders certificates by ACME.
type issuer struct {
	*certmagic.ACMEIssuer
	// rehearsal is the staging CA, used first after a failure: Let's Encrypt allows few failures of the real one.
	// nil: none.
	rehearsal *certmagic.ACMEIssuer
	life      context.Context // certmagic's own contexts do not end with the server
	host      string
	port      int

	order  sync.Mutex // one order at a time
	failed bool
}

func newIssuer(life context.Context, config *certmagic.Config, o Options, roots *x509.CertPool) *issuer {
	directory := o.Directory
	if directory == "" {
		directory = certmagic.LetsEncryptProductionCA
	}
	client := func(directory string) *certmagic.ACMEIssuer {
		// TestCA keeps certmagic from selecting another CA for its attempts. Issue does that.
		return certmagic.NewACMEIssuer(config, certmagic.ACMEIssuer{CA: directory, TestCA: directory, Email: o.Email, Agreed: true, TrustedRoots: roots,
			ListenHost: o.Host, AltTLSALPNPort: o.Port, HTTPProxy: oneRequest, Logger: config.Logger})
	}
	i := &issuer{ACMEIssuer: client(directory), life: life, host: o.Host, port: o.Port}
	if directory == certmagic.LetsEncryptProductionCA {
		i.rehearsal = client(certmagic.LetsEncryptStagingCA)
	}
	return i
}

// oneRequest makes each request use its own connection: certmagic's client would keep its connections and their
// goroutines after the server stops. The hook for the proxy of a request is the only place to do that.
func oneRequest(r *http.Request) (*url.URL, error) {
	r.Close = true
	return http.ProxyFromEnvironment(r)
}

// PreCheck runs before an order and sets up the account.
func (i *issuer) PreCheck(ctx context.Context, names []string, interactive bool) error {
	err := i.ACMEIssuer.PreCheck(ctx, names, interactive)
	if i.rehearsal != nil {
		err = errors.Join(err, i.rehearsal.PreCheck(ctx, names, interactive))
	}
	return err
}

// Issue makes one attempt. The caller retries.
func (i *issuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	i.order.Lock()
	defer i.order.Unlock()
	ctx, cancel := i.within(ctx)
	defer cancel()
	// An order marked as a retry bypasses certmagic's rate limiter, whose goroutine never ends. One name needs no limit.
	tries := 1
	ctx = context.WithValue(ctx, certmagic.AttemptsCtxKey, &tries)
	port := i.httpPort()
	if i.rehearsal != nil && i.failed {
		i.rehearsal.AltHTTPPort = port
		if _, err := i.rehearsal.Issue(ctx, csr); err != nil {
			return nil, certmagic.ErrNoRetry{Err: err}
		}
	}
	i.AltHTTPPort = port
	c, err := i.ACMEIssuer.Issue(ctx, csr)
	if i.failed = err != nil; i.failed {
		return nil, certmagic.ErrNoRetry{Err: err}
	}
	return c, nil
}

// GetRenewalInfo asks the CA when to renew.
func (i *issuer) GetRenewalInfo(ctx context.Context, c certmagic.Certificate) (acme.RenewalInfo, error) {
	ctx, cancel := i.within(ctx)
	defer cancel()
	return i.ACMEIssuer.GetRenewalInfo(ctx, c)
}

// within returns a context that also ends with the server.
func (i *issuer) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(i.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// httpPort returns the port for HTTP-01 challenges: port 80 if it is available, otherwise the server's own port, to
// which a router may forward port 80.
func (i *issuer) httpPort() int {
	l, err := net.Listen("tcp", net.JoinHostPort(i.host, strconv.Itoa(certmagic.HTTPChallengePort)))
	if err != nil {
		return i.port
	}
	_ = l.Close()
	return certmagic.HTTPChallengePort
}

// wait waits until no order is in progress.
func (i *issuer) wait() {
	i.order.Lock()
	defer i.order.Unlock()
}
