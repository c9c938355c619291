package device_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
)

// signer is a CA, or something that pretends to be one.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (s *signer) pin() string {
	sum := sha256.Sum256(s.cert.Raw)
	return hex.EncodeToString(sum[:])
}

// certificate creates a certificate that is valid between two times relative to now, signed by
// another one or by itself.
func certificate(t *testing.T, by *signer, authority bool, from, to time.Duration) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// The name is always the same, because it must not matter.
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "Hermes Mobile"}, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
		BasicConstraintsValid: true, IsCA: authority, KeyUsage: x509.KeyUsageDigitalSignature}
	if authority {
		template.KeyUsage |= x509.KeyUsageCertSign
	}
	parent, parentKey := template, key
	if by != nil {
		parent, parentKey = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{c, key}
}

// A device that pinned a CA accepts every currently valid certificate of that CA, and no other.
func TestPinnedAuthority(t *testing.T) {
	const hour = time.Hour
	ca := certificate(t, nil, true, -hour, 1000*hour)
	expired := certificate(t, nil, true, -2*hour, -hour)
	other := certificate(t, nil, true, -hour, 1000*hour)
	leaf, renewed := certificate(t, ca, false, -hour, hour), certificate(t, ca, false, -hour, 2*hour)
	alone := certificate(t, nil, false, -hour, hour)
	middle := certificate(t, ca, true, -hour, hour)
	for _, tt := range []struct {
		name  string
		pin   *signer
		chain []*signer
		taken bool
	}{
		{"right authority", ca, []*signer{leaf, ca}, true},
		{"renewed", ca, []*signer{renewed, ca}, true},
		{"authority is sent last", ca, []*signer{leaf, other, ca}, true},
		{"authority itself has expired", expired, []*signer{certificate(t, expired, false, -hour, hour), expired}, true},
		{"certificate itself", leaf, []*signer{leaf, ca}, true},
		{"self-signed", alone, []*signer{alone}, true},
		{"wrong authority", other, []*signer{leaf, ca}, false},
		{"authority is not sent", ca, []*signer{leaf}, false},
		{"signed by another of the same name", ca, []*signer{certificate(t, other, false, -hour, hour), ca}, false},
		{"self-signed, with the authority beside it", ca, []*signer{alone, ca}, false},
		{"expired", ca, []*signer{certificate(t, ca, false, -2*hour, -hour), ca}, false},
		{"not yet valid", ca, []*signer{certificate(t, ca, false, hour, 2*hour), ca}, false},
		{"signed by one between", ca, []*signer{certificate(t, middle, false, -hour, hour), middle, ca}, false},
		{"the pinned one is no authority", leaf, []*signer{certificate(t, leaf, false, -hour, hour), leaf}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(&model{ids: map[string]bool{}, files: map[string][]byte{}})
			srv.Config.ErrorLog = log.New(io.Discard, "", 0) // devices hang up on it, as they should
			c := tls.Certificate{PrivateKey: tt.chain[0].key}
			for _, s := range tt.chain {
				c.Certificate = append(c.Certificate, s.cert.Raw)
			}
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{c}}
			srv.StartTLS()
			defer srv.Close()
			cfg := config("wss" + strings.TrimPrefix(srv.URL, "https"))
			cfg.Fingerprint = tt.pin.pin()
			a := open(t, cfg)
			defer a.Close(t.Context())
			got := expect(a, func(s device.StatusChanged) bool { return s.State == device.Online || s.Err != nil })
			switch {
			case tt.taken && got.State != device.Online:
				t.Errorf("rejected: %v", got.Err)
			case !tt.taken && !errors.Is(got.Err, device.ErrFingerprint):
				t.Errorf("%v, %v", got.State, got.Err)
			case !tt.taken: // whoever waits with a limit hears the cause, and not only that the time is over
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := a.WaitOnline(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, device.ErrFingerprint) {
					t.Errorf("WaitOnline: %v", err)
				}
			}
		})
	}
}
