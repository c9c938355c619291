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

// ErrFingerprint: the server's certificate is not the one that was pinned, and not signed by it. It stands in Status.Err while the device goes
// on trying: somebody may be in between, or the server has a new certificate and must be paired again.
var ErrFingerprint = errors.New("device: the server's certificate is not the one this device was paired with")

// client makes the HTTP client for the upgrade and for downloads; own tells whether its connections are ours to end.
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
		// The pin replaces the chain of trust, which ends nowhere in the system: names and authorities are not looked at.
		t.TLSClientConfig.InsecureSkipVerify = true
		t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
			return checkPin(s.PeerCertificates, pin, time.Now())
		}
	}
	return &http.Client{Transport: t}, true, nil
}

// checkPin accepts the pinned certificate itself, and one that a pinned authority has signed for now. The authority must be
// sent along, since only its fingerprint is known here.
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
		return pin, errors.New("device: Config.Fingerprint must be a SHA-256 in hex, 64 characters without the colons")
	}
	copy(pin[:], b)
	return pin, nil
}
