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

// maxChain is how many certificates of a file are looked at. A chain has two to four.
const maxChain = 50

// ChainFaults says what is wrong with the certificates that a server shows, the server's own first, in sentences. Browsers on
// computers fetch an intermediate certificate that is missing, and phones do not, so a chain that works for its owner may be the
// reason why phones refuse the server. roots are the authorities that are known; nil: those of this machine.
func ChainFaults(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) (faults []string) {
	if len(chain) == 0 {
		return nil
	}
	if len(chain) > maxChain {
		return []string{fmt.Sprintf("there are %d certificates, of which phones read a few", len(chain))}
	}
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	path := []int{0}
	for top := chain[0]; !signsItself(top); {
		next := issuerOf(top, chain, path, now)
		if next < 0 {
			break
		}
		if c := chain[next]; now.After(c.NotAfter) {
			say("the intermediate certificate of %s expired at %s UTC", subjectName(c), c.NotAfter.UTC().Format(time.DateTime))
		}
		path, top = append(path, next), chain[next]
	}
	if leaf := chain[0]; len(path) == 1 && !signsItself(leaf) && !known(leaf, roots, now) {
		say("the chain is missing: there is the server's certificate alone, and not that of %s, which signed it", issuerName(leaf))
	}
	if !slices.IsSorted(path) {
		say("the certificates are in the wrong order: the one of the server comes first, and each is followed by the one that signed it")
	}
	for i, c := range chain {
		switch {
		case slices.ContainsFunc(chain[:i], c.Equal):
			say("certificate %d (%s) is there twice", i+1, subjectName(c))
		case !slices.Contains(path, i) && !relatedTo(c, chain, path):
			say("certificate %d (%s) has nothing to do with the server's", i+1, subjectName(c))
		}
	}
	return faults
}

// issuerOf finds who signed a certificate among the rest of a chain: one that is still valid where there are several. -1: nobody did.
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

// relatedTo reports whether a certificate is another one of an authority of the path, as where authorities sign one another.
func relatedTo(c *x509.Certificate, chain []*x509.Certificate, path []int) bool {
	return slices.ContainsFunc(path, func(i int) bool {
		return bytes.Equal(chain[i].RawIssuer, c.RawSubject) || bytes.Equal(chain[i].RawSubject, c.RawSubject)
	})
}

func signsItself(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer)
}

// known reports whether an authority that is known signed a certificate itself. That it has expired is another question.
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

// subjectName and issuerName name a certificate for a person: what it says is of strangers, so it is quoted.
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
