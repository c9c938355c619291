package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"hermes-mobile/internal/atomicfile"
)

// readLeaf reads the server's certificate. It returns nil and no error before the first one exists.
func readLeaf(dir string) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(dir, leafCert), filepath.Join(dir, leafKey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// writeLeaf stores a certificate and its key. After a crash in between, the two do not match, and
// the server creates a new pair.
func writeLeaf(dir string, c *tls.Certificate) error {
	return errors.Join(writeKey(filepath.Join(dir, leafKey), c.PrivateKey.(*ecdsa.PrivateKey)), writeCerts(filepath.Join(dir, leafCert), c.Certificate...))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), atomicfile.Options{})
}

func writeCerts(path string, ders ...[]byte) error {
	var b bytes.Buffer
	for _, der := range ders {
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return err
		}
	}
	return atomicfile.Replace(path, b.Bytes(), atomicfile.Options{Mode: 0o644})
}

// protect removes the permissions of other users from a key file.
func protect(path string, log *slog.Logger) error {
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm()&0o077 == 0 {
		return err
	}
	log.Warn("private key was readable by other users, fixing its mode", "file", path, "mode", fmt.Sprintf("%04o", fi.Mode().Perm()))
	return os.Chmod(path, 0o600)
}
