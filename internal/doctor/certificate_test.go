package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
)

// secured is a server with a certificate of our own making.
func secured(t *testing.T, from, to time.Time, names ...string) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "made by a test"}, NotBefore: from, NotAfter: to, BasicConstraintsValid: true, IsCA: true}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	ok(t, err)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestCertificate(t *testing.T) {
	now := time.Now()
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		from, to time.Time
		names    []string
		want     string
		says     []string
	}{
		"good":       {now.Add(-day), now.Add(60 * day), []string{"127.0.0.1"}, "", nil},
		"expired":    {now.Add(-60 * day), now.Add(-day), []string{"127.0.0.1"}, "certificate_expired", []string{"127.0.0.1", now.Add(-day).UTC().Format("2006-01-02")}},
		"not yet":    {now.Add(day), now.Add(60 * day), []string{"127.0.0.1"}, "certificate_expired", []string{"clock"}},
		"other name": {now.Add(-day), now.Add(60 * day), []string{"agent.example.com", "10.0.0.9"}, "certificate_wrong_name", []string{"agent.example.com, 10.0.0.9", "MOBILE_PUBLIC_URL"}},
		"soon":       {now.Add(-day), now.Add(10*day + time.Hour), []string{"127.0.0.1"}, "certificate_expires_soon", []string{"10 days"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := secured(t, tc.from, tc.to, tc.names...)
			f := folderFacts(&Folder{Path: "/d"})
			ProbePublic(t.Context(), f, s.URL, "/ws", nil)
			list := Shorten(CheckPublic(f))
			// Our own authority is only worth a note.
			mustFind(t, list, "certificate_untrusted", "made by a test")
			switch tc.want {
			case "certificate_expired":
				mustFind(t, list, "certificate_expired", tc.says...)
			case "certificate_wrong_name":
				mustFind(t, list, "certificate_wrong_name", tc.says...)
			case "certificate_expires_soon":
				mustFind(t, list, "certificate_expires_soon", tc.says...)
			}
			for _, c := range []string{"certificate_expired", "certificate_wrong_name", "certificate_expires_soon"} {
				if c != tc.want {
					mustNotFind(t, list, c)
				}
			}
			if Well(list) != (tc.want == "") {
				t.Errorf("well: %v, with %q", Well(list), codes(list))
			}
		})
	}
}

// An authority that the machine knows is not complained of, with one between that the server sends.
func TestCertificateOfAKnownAuthority(t *testing.T) {
	s := secured(t, time.Now().Add(-time.Hour), time.Now().Add(60*24*time.Hour), "127.0.0.1")
	c, found := ProbeCertificate(t.Context(), s.URL, time.Now())
	if !found || !c.Unknown || c.BadName || !strings.Contains(c.Issuer, "made by a test") {
		t.Errorf("%+v, %v", c, found)
	}
	f := folderFacts(&Folder{Path: "/d"})
	c.Unknown = false
	f.Certificates = []Certificate{c}
	if list := CheckPublic(f); len(list) != 0 {
		t.Errorf("%q", codes(list))
	}
	for _, address := range []string{strings.Replace(s.URL, "https", "http", 1), "https://127.0.0.1:1", "%"} {
		if _, found := ProbeCertificate(t.Context(), address, time.Now()); found {
			t.Errorf("a certificate at %s", address)
		}
	}
}

// TestCertificateChain: a server that shows its certificate without the one that signed it is warned of, seen from outside and by the
// server itself, and what only follows from that is left out.
func TestCertificateChain(t *testing.T) {
	sign := func(name string, ca bool, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ok(t, err)
		c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(60 * 24 * time.Hour),
			BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		if parent == nil {
			parent, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		ok(t, err)
		made, err := x509.ParseCertificate(der)
		ok(t, err)
		return made, key
	}
	root, rootKey := sign("a root", true, nil, nil)
	inter, interKey := sign("between", true, root, rootKey)
	leaf, key := sign("agent", false, inter, interKey)
	for name, chain := range map[string][][]byte{"alone": {leaf.Raw}, "whole": {leaf.Raw, inter.Raw}} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}}
			s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
			s.StartTLS()
			t.Cleanup(s.Close)
			f := folderFacts(&Folder{Path: "/d"})
			ProbePublic(t.Context(), f, s.URL, "/ws", nil)
			list := Shorten(CheckPublic(f))
			if name == "whole" {
				mustNotFind(t, list, "certificate_chain")
				mustFind(t, list, "certificate_untrusted", "between")
				return
			}
			mustFind(t, list, "certificate_chain", `"CN=between"`, "the intermediate certificates are missing", "fullchain")
			mustNotFind(t, list, "certificate_untrusted")
			if Well(list) {
				t.Error("all is well")
			}
		})
	}
	e := &checker{Facts: &Facts{Now: time.Now(), Config: &config.Config{}}}
	e.ownCertificate(cert.State{Mode: cert.Files, NotAfter: time.Now().Add(60 * 24 * time.Hour), Names: []string{"agent.example.com"}, Chain: []string{"the intermediate certificates are missing: x"}})
	mustFind(t, e.list, "certificate_chain", "agent.example.com", "the intermediate certificates are missing")
}
