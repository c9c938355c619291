package device

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"
)

// ErrFingerprint means that the server's certificate is not the pinned one, and the pinned one did
// not sign it. Status.Err holds it while the device keeps trying. Either somebody intercepts the
// connection, or the server has a new certificate and needs a new pairing.
var ErrFingerprint = errors.New("device: the server's certificate is not the one this device was paired with")

// client returns the HTTP client for the upgrade and for downloads. With own, the device ends its
// idle connections.
func (c *Config) client() (client *http.Client, own bool, err error) {
	if c.HTTPClient != nil {
		return c.HTTPClient, false, nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	if c.TLS != nil {
		t.TLSClientConfig = c.TLS.Clone()
	}
	if c.DialContext != nil {
		t.DialContext = c.DialContext
	}
	if c.Fingerprint != "" {
		pin, err := parseFingerprint(c.Fingerprint)
		if err != nil {
			return nil, false, err
		}
		if t.TLSClientConfig == nil {
			t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		// The pin replaces the chain of trust, which does not end in a system CA, and the check of
		// the name.
		t.TLSClientConfig.InsecureSkipVerify = true
		t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
			return checkPin(s.PeerCertificates, pin, time.Now())
		}
	}
	return &http.Client{Transport: t}, true, nil
}

// checkPin accepts the pinned certificate itself, and a currently valid one that a pinned CA
// signed. The server must send the CA along, because the device knows only its fingerprint.
func checkPin(chain []*x509.Certificate, pin [sha256.Size]byte, now time.Time) error {
	for i, c := range chain {
		if sha256.Sum256(c.Raw) != pin {
			continue
		}
		if i == 0 {
			return nil
		}
		leaf := chain[0]
		if c.IsCA && leaf.CheckSignatureFrom(c) == nil && !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter) {
			return nil
		}
	}
	return ErrFingerprint
}

func parseFingerprint(s string) (pin [sha256.Size]byte, err error) {
	s = strings.TrimPrefix(strings.ToLower(s), "sha256:")
	b, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err != nil || len(b) != len(pin) {
		return pin, errors.New("device: Config.Fingerprint must be a SHA-256 in hex: 64 characters, colons aside")
	}
	copy(pin[:], b)
	return pin, nil
}
