package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Names of the files in the folder for certificates.
const (
	authorityCert = "ca.pem"
	authorityKey  = "ca.key"
	leafCert      = "server.pem"
	leafKey       = "server.key"
)

// skew is how much a phone's clock may be behind ours.
const skew = time.Hour

// authority signs the server's certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// openAuthority reads the authority, and makes it the first time. It is never replaced: every phone would have to be
// paired again.
func openAuthority(dir string, now time.Time, log *slog.Logger) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, authorityCert), filepath.Join(dir, authorityKey)
	cert, certErr := os.ReadFile(certPath)
	key, keyErr := os.ReadFile(keyPath)
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	_, leafErr := os.Stat(filepath.Join(dir, leafCert))
	unused := errors.Is(leafErr, fs.ErrNotExist) // a first start that was cut off: no phone has seen it
	switch {
	case noCert && noKey, (noCert || noKey) && unused:
		switch {
		case !unused:
			log.Warn("the server's own authority is gone and made anew: phones must be paired again", "file", certPath)
		case noCert != noKey:
			log.Warn("the server's own authority was left unfinished and is made anew", "file", certPath)
		}
		return makeAuthority(certPath, keyPath, now)
	case certErr != nil || keyErr != nil:
		return nil, fmt.Errorf("the server's own authority cannot be read: %w; %s", errors.Join(certErr, keyErr), restore(certPath, keyPath))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s are damaged: %w; %s", certPath, keyPath, err, restore(certPath, keyPath))
	}
	ec, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%s is not an authority that this program made; %s", certPath, restore(certPath, keyPath))
	}
	if now.After(pair.Leaf.NotAfter) {
		log.Warn("the server's own authority has expired; paired phones go on, other programs may not. For a new one stop the server, delete its files, start it, and pair the phones again",
			"file", certPath, "not_after", pair.Leaf.NotAfter)
	}
	return &authority{pair.Leaf, ec}, protect(keyPath, log)
}

func restore(certPath, keyPath string) string {
	return fmt.Sprintf("put both back from a backup, or delete %s and %s to have a new one made, and pair every phone again", certPath, keyPath)
}

func makeAuthority(certPath, keyPath string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	name := "Hermes Mobile"
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew),
		NotAfter: now.AddDate(authorityYears, 0, 0), IsCA: true, MaxPathLenZero: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the server's own authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeKey(keyPath, key), writeCerts(certPath, der)); err != nil {
		return nil, fmt.Errorf("store the server's own authority: %w", err)
	}
	return &authority{cert, key}, nil
}

// issue makes a certificate of the server for these names and addresses.
func (a *authority) issue(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "Hermes Mobile"}, NotBefore: now.Add(-skew),
		NotAfter: now.AddDate(0, 0, leafDays), BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the server's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:])
	b[0] &= 0x7f // positive
	return new(big.Int).SetBytes(b[:])
}
