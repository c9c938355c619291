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

// skew is how far a phone's clock may be behind ours.
const skew = time.Hour

// authority is the server's own CA. It signs the server's certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// openAuthority reads the CA, or creates it the first time. It never replaces an existing CA, because all phones
// would have to pair again.
func openAuthority(dir string, now time.Time, log *slog.Logger) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, authorityCert), filepath.Join(dir, authorityKey)
	cert, certErr := os.ReadFile(certPath)
	key, keyErr := os.ReadFile(keyPath)
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	_, leafErr := os.Stat(filepath.Join(dir, leafCert))
	unused := errors.Is(leafErr, fs.ErrNotExist) // an interrupted first start: no phone has seen it
	switch {
	case noCert && noKey, (noCert || noKey) && unused:
		switch {
		case !unused:
			log.Warn("own CA missing, creating a new one: phones must pair again", "file", certPath)
		case noCert != noKey:
			log.Warn("own CA incomplete, creating a new one", "file", certPath)
		}
		return makeAuthority(certPath, keyPath, now)
	case certErr != nil || keyErr != nil:
		return nil, fmt.Errorf("read the server's own CA: %w; %s", errors.Join(certErr, keyErr), restore(certPath, keyPath))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s are damaged: %w; %s", certPath, keyPath, err, restore(certPath, keyPath))
	}
	ec, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%s is not a CA created by this program; %s", certPath, restore(certPath, keyPath))
	}
	if now.After(pair.Leaf.NotAfter) {
		log.Warn("own CA expired: paired phones still trust it; to replace it, stop the server, delete its files, start the server, and pair the phones again",
			"file", certPath, "not_after", pair.Leaf.NotAfter)
	}
	return &authority{pair.Leaf, ec}, protect(keyPath, log)
}

func restore(certPath, keyPath string) string {
	return fmt.Sprintf("restore both from a backup, or delete %s and %s to create a new CA, and pair every phone again", certPath, keyPath)
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
		return nil, fmt.Errorf("create the server's own CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeKey(keyPath, key), writeCerts(certPath, der)); err != nil {
		return nil, fmt.Errorf("store the server's own CA: %w", err)
	}
	return &authority{cert, key}, nil
}

// issue creates a certificate of the server for these names and addresses.
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
		return nil, fmt.Errorf("create the server's certificate: %w", err)
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
