package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/SherClockHolmes/webpush-go"

	"hermes-mobile/internal/atomicfile"
)

// KeysFile is the name of the key pair's file in the data folder.
const KeysFile = "vapid.json"

// Keys is the key pair by which push services know this server (RFC 8292), in base64url.
// Subscriptions of browsers are bound to it. With another key pair every browser must subscribe
// again.
type Keys struct {
	Public  string `json:"public_key"`
	Private string `json:"private_key"`
}

// OpenKeys reads the key pair of a data folder, or creates it the first time.
func OpenKeys(dir string) (*Keys, error) {
	path := filepath.Join(dir, KeysFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKeys(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read push key pair: %w", err)
	}
	k := &Keys{}
	if err := json.Unmarshal(text, k); err != nil || !k.belong() {
		return nil, fmt.Errorf("%s: not a push key pair: restore it from a backup, or delete it and have every device register again", path)
	}
	return k, nil
}

func makeKeys(path string) (*Keys, error) {
	private, public, err := webpush.GenerateVAPIDKeys()
	if err != nil {
		return nil, fmt.Errorf("create push key pair: %w", err)
	}
	k := &Keys{Public: public, Private: private}
	text, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("create push key pair: %w", err)
	}
	if err := atomicfile.Replace(path, append(text, '\n'), atomicfile.Options{}); err != nil {
		return nil, fmt.Errorf("write push key pair: %w", err)
	}
	return k, nil
}

// belong reports whether both halves belong together.
func (k *Keys) belong() bool {
	secret, err := decode(k.Private)
	if err != nil {
		return false
	}
	private, err := ecdh.P256().NewPrivateKey(secret)
	return err == nil && base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes()) == k.Public
}
