package server

import (
	"os"
	"path/filepath"
	"testing"

	"hermes-mobile/internal/cert"
)

// A certificate that the server makes itself is no matter; one that an authority has to give and
// does not is named.
func TestDoctorCertificate(t *testing.T) {
	r := start(t, "MOBILE_TLS=self")
	for _, code := range codesOf(r.examined()) {
		if len(code) > 11 && code[:11] == "certificate" {
			t.Errorf("with a certificate of its own: %s", code)
		}
	}

	r = start(t, "MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=https://agent.example.com", "MOBILE_TLS_ACME=https://127.0.0.1:1/directory")
	until(t, "the authority to be asked", func() bool { return r.server.addresses.certificate().LastError != "" })
	mustFind(t, r.examined(), "certificate_missing", "no certificate yet", "SIGHUP")
}

// A certificate that can no longer be read is named while the one in use is still good, and not any
// more when it is mended.
func TestDoctorCertificateNotRenewed(t *testing.T) {
	dir := folder(t)
	maker := start(t, "MOBILE_TLS=self")
	certPath, keyPath := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	var key []byte
	for from, to := range map[string]string{"server.pem": certPath, "server.key": keyPath} {
		b, err := os.ReadFile(filepath.Join(maker.cfg.Data, cert.Folder, from))
		ok(t, err)
		ok(t, os.WriteFile(to, b, 0o600))
		if to == keyPath {
			key = b
		}
	}
	r := startIn(t, dir, "MOBILE_TLS=files", "MOBILE_TLS_CERT="+certPath, "MOBILE_TLS_KEY="+keyPath)
	ok(t, os.WriteFile(keyPath, []byte("x"), 0o600))
	if err := r.server.Reload(r.cfg); err == nil {
		t.Fatal("a broken key was taken")
	}
	mustFind(t, r.examined(), "certificate_not_renewed", "It is valid until")
	ok(t, os.WriteFile(keyPath, key, 0o600))
	ok(t, r.server.Reload(r.cfg))
	for _, code := range codesOf(r.examined()) {
		if code == "certificate_not_renewed" {
			t.Error("it is mended, and still found")
		}
	}
}
