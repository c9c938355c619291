package device

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// ErrFingerprint: the server's certificate is not the one that was pinned. It stands in Status.Err while the device goes
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
		// The pin replaces the chain of trust: a self-signed certificate has none.
		t.TLSClientConfig.InsecureSkipVerify = true
		t.TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != pin {
				return ErrFingerprint
			}
			return nil
		}
	}
	return &http.Client{Transport: t}, true, nil
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
