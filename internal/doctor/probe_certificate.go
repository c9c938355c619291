package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"time"

	"hermes-mobile/internal/cert"
)

// ProbeCertificate fetches the certificate at an https address. It accepts any certificate:
// expired, for another name, or from an unknown CA. ok is false if it gets no certificate.
func ProbeCertificate(ctx context.Context, address string, now time.Time) (c Certificate, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return c, false
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: u.Hostname()}} // describe verifies it
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return c, false
	}
	defer conn.Close()
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return c, false
	}
	return describe(chain, u.Hostname(), now), true
}

// describe returns the facts about a certificate chain that a server sent.
func describe(chain []*x509.Certificate, host string, now time.Time) Certificate {
	leaf := chain[0]
	c := Certificate{Host: host, Issuer: leaf.Issuer.String(), From: leaf.NotBefore, To: leaf.NotAfter, BadName: leaf.VerifyHostname(host) != nil}
	c.Names = append(c.Names, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		c.Names = append(c.Names, ip.String())
	}
	between := x509.NewCertPool()
	for _, next := range chain[1:] {
		between.AddCert(next)
	}
	at := now // an expired certificate may still be from a known CA
	if at.After(leaf.NotAfter) {
		at = leaf.NotAfter
	}
	if at.Before(leaf.NotBefore) {
		at = leaf.NotBefore
	}
	_, err := leaf.Verify(x509.VerifyOptions{Intermediates: between, CurrentTime: at})
	c.Unknown, c.Chain = err != nil, cert.ChainFaults(chain, nil, now)
	return c
}
