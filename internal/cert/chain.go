package cert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// maxChain is the largest number of certificates that ChainFaults checks. A chain has two to four.
const maxChain = 50

// ChainFaults describes the problems of the chain that a server sends, with the server's certificate first.
// Browsers on computers fetch a missing intermediate certificate, but phones do not. So a chain that works for
// its owner may make phones reject the server. roots are the known CAs; nil: those of this machine.
func ChainFaults(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) (faults []string) {
	if len(chain) == 0 {
		return nil
	}
	if len(chain) > maxChain {
		return []string{fmt.Sprintf("there are %d certificates, but phones read only a few", len(chain))}
	}
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	path := []int{0}
	for top := chain[0]; !signsItself(top); {
		next := issuerOf(top, chain, path, now)
		if next < 0 {
			break
		}
		if c := chain[next]; now.After(c.NotAfter) {
			say("the intermediate certificate %s expired at %s UTC", subjectName(c), c.NotAfter.UTC().Format(time.DateTime))
		}
		path, top = append(path, next), chain[next]
	}
	if leaf := chain[0]; len(path) == 1 && !signsItself(leaf) && !known(leaf, roots, now) {
		say("the intermediate certificates are missing: the server sends only its own certificate, without that of %s, which signed it", issuerName(leaf))
	}
	if !slices.IsSorted(path) {
		say("the certificates are in the wrong order: the server's must come first, and each one's signer must follow it")
	}
	for i, c := range chain {
		switch {
		case slices.ContainsFunc(chain[:i], c.Equal):
			say("certificate %d (%s) is a duplicate", i+1, subjectName(c))
		case !slices.Contains(path, i) && !relatedTo(c, chain, path):
			say("certificate %d (%s) is unrelated to the server's", i+1, subjectName(c))
		}
	}
	return faults
}

// issuerOf returns the index of the certificate that signed c, or -1. If there are several, it prefers one that
// is still valid.
func issuerOf(c *x509.Certificate, chain []*x509.Certificate, path []int, now time.Time) int {
	found := -1
	for i, other := range chain {
		if slices.Contains(path, i) || !bytes.Equal(other.RawSubject, c.RawIssuer) || c.CheckSignatureFrom(other) != nil {
			continue
		}
		if found < 0 || now.After(chain[found].NotAfter) && !now.After(other.NotAfter) {
			found = i
		}
	}
	return found
}

// relatedTo reports whether a certificate is another one of a CA on the path, as with cross-signed CAs.
func relatedTo(c *x509.Certificate, chain []*x509.Certificate, path []int) bool {
	return slices.ContainsFunc(path, func(i int) bool {
		return bytes.Equal(chain[i].RawIssuer, c.RawSubject) || bytes.Equal(chain[i].RawSubject, c.RawSubject)
	})
}

func signsItself(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer)
}

// known reports whether a known CA signed a certificate directly. It ignores the expiry.
func known(c *x509.Certificate, roots *x509.CertPool, now time.Time) bool {
	if now.After(c.NotAfter) {
		now = c.NotAfter
	}
	if now.Before(c.NotBefore) {
		now = c.NotBefore
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

// subjectName and issuerName name a certificate for display. They quote the text, because it comes from a stranger.
func subjectName(c *x509.Certificate) string { return fmt.Sprintf("%.100q", c.Subject.String()) }
func issuerName(c *x509.Certificate) string  { return fmt.Sprintf("%.100q", c.Issuer.String()) }

// parsed are the certificates of a pair.
func parsed(c *tls.Certificate) (chain []*x509.Certificate) {
	for _, der := range c.Certificate {
		if one, err := x509.ParseCertificate(der); err == nil {
			chain = append(chain, one)
		}
	}
	return chain
}

// placeOf is the number of the certificate in a file of PEM that a key belongs to, from 1; 0: of none.
func placeOf(certPEM, keyPEM []byte) int {
	for n := 1; n <= maxChain; n++ {
		block, rest := pem.Decode(certPEM)
		if block == nil {
			return 0
		}
		certPEM = rest
		if block.Type != "CERTIFICATE" {
			n--
			continue
		}
		if _, err := tls.X509KeyPair(pem.EncodeToMemory(block), keyPEM); err == nil {
			return n
		}
	}
	return 0
}
