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
	// rehearsal is tried first after a failure: Let's Encrypt bears few failures of the real one. nil: there is none.
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
		// TestCA keeps certmagic from choosing another authority for its tries, which Issue does.
		return certmagic.NewACMEIssuer(config, certmagic.ACMEIssuer{CA: directory, TestCA: directory, Email: o.Email, Agreed: true, TrustedRoots: roots,
			ListenHost: o.Host, AltTLSALPNPort: o.Port, HTTPProxy: oneRequest, Logger: config.Logger})
	}
	i := &issuer{ACMEIssuer: client(directory), life: life, host: o.Host, port: o.Port}
	if directory == certmagic.LetsEncryptProductionCA {
		i.rehearsal = client(certmagic.LetsEncryptStagingCA)
	}
	return i
}

// oneRequest has each request use a connection of its own: certmagic's client would leave its connections open, with their
// goroutines, beyond the end of the server. It is asked for the proxy of each request, which is the only way in.
func oneRequest(r *http.Request) (*url.URL, error) {
	r.Close = true
	return http.ProxyFromEnvironment(r)
}

// PreCheck is asked before an order, and settles the account.
func (i *issuer) PreCheck(ctx context.Context, names []string, interactive bool) error {
	err := i.ACMEIssuer.PreCheck(ctx, names, interactive)
	if i.rehearsal != nil {
		err = errors.Join(err, i.rehearsal.PreCheck(ctx, names, interactive))
	}
	return err
}

// Issue makes one try. Who calls it tries again.
func (i *issuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	i.order.Lock()
	defer i.order.Unlock()
	ctx, cancel := i.within(ctx)
	defer cancel()
	// What counts as a repeat is not held up by certmagic's limiter, which has a goroutine for ever. One name needs no limit.
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

// GetRenewalInfo asks the authority when to renew.
func (i *issuer) GetRenewalInfo(ctx context.Context, c certmagic.Certificate) (acme.RenewalInfo, error) {
	ctx, cancel := i.within(ctx)
	defer cancel()
	return i.ACMEIssuer.GetRenewalInfo(ctx, c)
}

// within returns a context that ends with the server, too.
func (i *issuer) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(i.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// httpPort is where HTTP-01 is answered: port 80 where it can be had, else the server's own port, to which a router may
// forward port 80.
func (i *issuer) httpPort() int {
	l, err := net.Listen("tcp", net.JoinHostPort(i.host, strconv.Itoa(certmagic.HTTPChallengePort)))
	if err != nil {
		return i.port
	}
	_ = l.Close()
	return certmagic.HTTPChallengePort
}

// wait returns when no order is under way.
func (i *issuer) wait() {
	i.order.Lock()
	defer i.order.Unlock()
}
