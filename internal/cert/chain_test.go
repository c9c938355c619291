package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signed is a certificate with its key, as an authority makes it.
type signed struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

func (s signed) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Raw})
}

// sign makes a certificate; by is who signs it, nil: itself. until is in days from now.
func sign(t *testing.T, name string, by *signed, until int) signed {
	t.Helper()
	return signKey(t, name, by, until, nil)
}

// signKey is sign for a key that exists, as with authorities that sign one another.
func signKey(t *testing.T, name string, by *signed, until int, key *ecdsa.PrivateKey) signed {
	t.Helper()
	var err error
	if key == nil {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ok(t, err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	ok(t, err)
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(0, 0, until),
		IsCA: !strings.Contains(name, "."), BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	if !c.IsCA {
		c.DNSNames = []string{name}
	}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.Certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	ok(t, err)
	parsed, err := x509.ParseCertificate(der)
	ok(t, err)
	return signed{parsed, key}
}

// TestChainFaults: what of a chain makes phones refuse a server, and what does not.
func TestChainFaults(t *testing.T) {
	root := sign(t, "root", nil, 1000)
	inter := sign(t, "inter", &root, 500)
	second := sign(t, "second", &inter, 500)
	expired := signKey(t, "inter", &root, -3, inter.key)
	leaf := sign(t, "agent.example.com", &inter, 90)
	deep := sign(t, "deep.example.com", &second, 90)
	direct := sign(t, "direct.example.com", &root, 90)
	alone := sign(t, "alone.example.com", nil, 90)
	old := sign(t, "old.example.com", &inter, -2)
	other := sign(t, "other", nil, 900)
	stranger := sign(t, "stranger.example.com", &other, 90)
	crossed := signKey(t, "root", &other, 900, root.key)
	known := x509.NewCertPool()
	known.AddCert(root.Certificate)
	nobody := x509.NewCertPool()
	for name, c := range map[string]struct {
		chain []signed
		roots *x509.CertPool
		want  []string // parts of each fault, in order
	}{
		"whole":                               {[]signed{leaf, inter}, known, nil},
		"whole, of an authority of one's own": {[]signed{leaf, inter}, nobody, nil},
		"with its root":                       {[]signed{leaf, inter, root}, nobody, nil},
		"deep":                                {[]signed{deep, second, inter}, known, nil},
		"directly of a known root":            {[]signed{direct}, known, nil},
		"directly of a root that is there":    {[]signed{direct, root}, nobody, nil},
		"signed by itself":                    {[]signed{alone}, nobody, nil},
		"signed by two roots":                 {[]signed{leaf, inter, crossed}, known, nil},
		"both forms of a root":                {[]signed{leaf, inter, root, crossed}, known, nil},
		"an expired one beside a valid one":   {[]signed{leaf, expired, inter}, known, nil},
		"alone":                               {[]signed{leaf}, known, []string{`without that of "CN=inter"`}},
		"alone and expired":                   {[]signed{old}, known, []string{"the intermediate certificates are missing"}},
		"directly of an unknown root":         {[]signed{direct}, nobody, []string{`without that of "CN=root"`}},
		"another's intermediate":              {[]signed{leaf, second}, known, []string{"the intermediate certificates are missing", `certificate 2 ("CN=second") is unrelated`}},
		"one too many":                        {[]signed{leaf, inter, other}, known, []string{`certificate 3 ("CN=other") is unrelated`}},
		"another server's":                    {[]signed{leaf, inter, stranger}, known, []string{`certificate 3 ("CN=stranger.example.com") is unrelated`}},
		"twice":                               {[]signed{leaf, inter, inter}, known, []string{`certificate 3 ("CN=inter") is a duplicate`}},
		"the server's twice":                  {[]signed{leaf, leaf, inter}, known, []string{`certificate 2 ("CN=agent.example.com") is a duplicate`}},
		"expired intermediate":                {[]signed{leaf, expired}, known, []string{`the intermediate certificate "CN=inter" expired at ` + expired.NotAfter.UTC().Format("2006-01-02")}},
		"in the wrong order":                  {[]signed{deep, inter, second}, known, []string{"in the wrong order"}},
	} {
		t.Run(name, func(t *testing.T) {
			var chain []*x509.Certificate
			for _, s := range c.chain {
				chain = append(chain, s.Certificate)
			}
			got := ChainFaults(chain, c.roots, time.Now())
			if len(got) != len(c.want) {
				t.Fatalf("it says %q, want %q", got, c.want)
			}
			for i, part := range c.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("it says %q, want %q", got[i], part)
				}
			}
		})
	}
	if got := ChainFaults(nil, nil, time.Now()); got != nil {
		t.Errorf("of nothing it says %q", got)
	}
	var many []*x509.Certificate
	for range 10_000 {
		many = append(many, inter.Certificate)
	}
	if got := ChainFaults(many, known, time.Now()); len(got) != 1 {
		t.Errorf("of 10,000 it says %d things", len(got))
	}
	// Two that sign each other are no chain without an end.
	a := sign(t, "a", nil, 100)
	b := signKey(t, "b", &a, 100, nil)
	again := signKey(t, "a", &b, 100, a.key)
	if got := ChainFaults([]*x509.Certificate{b.Certificate, again.Certificate}, nobody, time.Now()); len(got) != 0 {
		t.Errorf("of two that sign each other it says %q", got)
	}
	// What a certificate calls itself is quoted and cut.
	evil := sign(t, "evil\n\x1b[2J"+strings.Repeat("x", 5000), nil, 100)
	for _, text := range ChainFaults([]*x509.Certificate{leaf.Certificate, inter.Certificate, evil.Certificate}, known, time.Now()) {
		if strings.ContainsAny(text, "\n\x1b") || len(text) > 300 {
			t.Errorf("it says %q", text)
		}
	}
}

// TestChainOfFiles: the start of a server says what is wrong with the chain in its file, and so does its state. A chain whose first
// certificate is not the server's is refused with the place of the right one.
func TestChainOfFiles(t *testing.T) {
	root := sign(t, "root", nil, 1000)
	inter := sign(t, "inter", &root, 500)
	leaf := sign(t, "agent.example.com", &inter, 90)
	der, err := x509.MarshalECPrivateKey(leaf.key)
	ok(t, err)
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	params := []byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n")
	write := func(parts ...[]byte) *world {
		w := newWorld(t, Files)
		dir := t.TempDir()
		w.o.CertFile, w.o.KeyFile = filepath.Join(dir, "fullchain.pem"), filepath.Join(dir, "privkey.pem")
		ok(t, os.WriteFile(w.o.CertFile, bytes.Join(parts, nil), 0o600))
		ok(t, os.WriteFile(w.o.KeyFile, key, 0o600))
		return w
	}
	w := write(leaf.pem())
	if st := w.open().State(); len(st.Chain) != 1 || !strings.Contains(st.Chain[0], "the intermediate certificates are missing") || !w.log.has("phones may reject the server") {
		t.Errorf("a certificate alone: %+v", st)
	}
	w = write(leaf.pem(), inter.pem())
	c := w.open()
	if st := c.State(); len(st.Chain) != 0 || w.log.has("phones may reject") {
		t.Errorf("a whole chain: %+v", st)
	}
	w.clock.add(2, 0, 0)
	if st := c.State(); len(st.Chain) != 1 || !strings.Contains(st.Chain[0], "expired") {
		t.Errorf("once the intermediate has expired: %+v", st)
	}
	for name, parts := range map[string][][]byte{
		"in reverse":             {root.pem(), inter.pem(), leaf.pem()},
		"the intermediate first": {params, inter.pem(), leaf.pem()},
	} {
		w := write(parts...)
		place := " 3:"
		if len(parts[0]) == len(params) {
			place = " 2:"
		}
		if _, err := Open(w.o); err == nil || !strings.Contains(err.Error(), "the first certificate must be the server's") || !strings.Contains(err.Error(), "belongs to certificate"+place) || strings.Contains(err.Error(), "does not match") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(write(inter.pem(), root.pem()).o); err == nil || strings.Contains(err.Error(), "must be the server's") {
		t.Errorf("a chain without the server's: %v", err)
	}
	if _, err := tls.X509KeyPair(leaf.pem(), key); err != nil {
		t.Error(err)
	}
}
