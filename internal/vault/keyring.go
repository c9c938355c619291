package vault

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/atomicfile"
)

const (
	// scopeFile marks that the secrets of this folder are in the keyring, and contains their scope,
	// which separates two folders.
	scopeFile = "vault.keyring"
	service   = "hermes-mobile"
	// pieceSize is an item size that every keyring accepts: the limit on Windows is 2560 bytes, on
	// macOS near 3000 with base64.
	pieceSize = 1800
	// keyringTimeout is how long the system may take. It may ask the person for a password.
	keyringTimeout = 90 * time.Second
)

var errKeyringSlow = errors.New("the keyring doesn't answer")

func newScope() string { return strings.ToLower(rand.Text()[:16]) }

func readScope(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, scopeFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

func writeScope(dir, scope string) error {
	if err := atomicfile.Replace(filepath.Join(dir, scopeFile), []byte(scope+"\n"), atomicfile.Options{}); err != nil {
		return fmt.Errorf("open the folder of the credentials: %w", err)
	}
	return nil
}

// keyringBackend stores a binding as an index item that names a generation of pieces. It writes the
// index last, so a crash in between leaves the previous generation.
type keyringBackend struct{ scope string }

type index struct {
	Generation string `json:"generation"`
	Pieces     int    `json:"pieces"`
	Sum        string `json:"sum"`
}

// works writes, reads and deletes an item. A keyring that merely answers may be locked or
// read-only.
func (k *keyringBackend) works() bool {
	if !reachable() {
		return false
	}
	name, value := k.scope+"/probe-"+newScope(), newScope()
	err := withTimeout(func() error {
		if err := keyring.Set(service, name, value); err != nil {
			return err
		}
		got, err := keyring.Get(service, name)
		if e := keyring.Delete(service, name); err == nil {
			err = e
		}
		if err == nil && got != value {
			err = errors.New("the keyring returned different content")
		}
		return err
	})
	return err == nil
}

// reachable keeps the D-Bus library from starting a bus of its own on a machine without one.
// That bus would store nothing and keep running.
func reachable() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return true
	}
	return present(fmt.Sprintf("/run/user/%d/bus", os.Getuid()))
}

// withTimeout bounds a call that a dialog of the system may delay. The call can't be canceled, so
// it goes on by itself and ends when the person answers the dialog or the process ends.
func withTimeout(call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	late := time.NewTimer(keyringTimeout)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return errKeyringSlow
	}
}

func (k *keyringBackend) item(b Binding, part string) string {
	sum := sha256.Sum256([]byte(b.Gateway + "\x00" + b.Account))
	return k.scope + "/" + hex.EncodeToString(sum[:10]) + "/" + part
}

func (k *keyringBackend) load(b Binding) (s Secrets, err error) {
	err = withTimeout(func() error {
		s, err = k.read(b)
		return err
	})
	if errors.Is(err, errKeyringSlow) {
		return nil, &SignInError{Locked}
	}
	return s, err
}

func (k *keyringBackend) read(b Binding) (Secrets, error) {
	at, err := k.index(b)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for n := range at.Pieces {
		piece, err := keyring.Get(service, k.item(b, fmt.Sprintf("%s.%d", at.Generation, n)))
		if errors.Is(err, keyring.ErrNotFound) {
			return nil, &SignInError{Damaged}
		} else if err != nil {
			return nil, &SignInError{Locked}
		}
		text.WriteString(piece)
	}
	plain, err := base64.StdEncoding.DecodeString(text.String())
	var values map[string]string
	if err != nil || sum(text.String()) != at.Sum || json.Unmarshal(plain, &values) != nil {
		return nil, &SignInError{Damaged}
	}
	out := Secrets{}
	for name, value := range values {
		out[name] = gateway.NewSecret(value)
	}
	return out, nil
}

func (k *keyringBackend) index(b Binding) (at index, err error) {
	text, err := keyring.Get(service, k.item(b, "index"))
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return at, ErrNone
	case err != nil:
		return at, &SignInError{Locked}
	case json.Unmarshal([]byte(text), &at) != nil || at.Pieces < 1 || at.Pieces > 100:
		return at, &SignInError{Damaged}
	}
	return at, nil
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func (k *keyringBackend) save(b Binding, s Secrets) error {
	plain, err := json.Marshal(revealed(s))
	if err != nil {
		return errors.New("the credentials cannot be written as JSON")
	}
	text := base64.StdEncoding.EncodeToString(plain) // pieces may be cut anywhere, and some keyrings store only text
	return failed(withTimeout(func() error {
		old, oldErr := k.index(b)
		at := index{Generation: newScope(), Sum: sum(text)}
		for rest := text; rest != ""; at.Pieces++ {
			piece := rest[:min(pieceSize, len(rest))]
			rest = rest[len(piece):]
			if err := keyring.Set(service, k.item(b, fmt.Sprintf("%s.%d", at.Generation, at.Pieces)), piece); err != nil {
				return err
			}
		}
		head, _ := json.Marshal(at) // strings and a number
		if err := keyring.Set(service, k.item(b, "index"), string(head)); err != nil {
			return err
		}
		if oldErr == nil {
			k.discard(b, old)
		}
		return nil
	}))
}

// discard deletes pieces that no index names any more. A leftover piece is useless to anybody who
// can't read the rest.
func (k *keyringBackend) discard(b Binding, at index) {
	for n := range at.Pieces {
		_ = keyring.Delete(service, k.item(b, fmt.Sprintf("%s.%d", at.Generation, n)))
	}
}

func (k *keyringBackend) drop(b Binding) error {
	return failed(withTimeout(func() error {
		at, err := k.index(b)
		if errors.Is(err, ErrNone) {
			return nil
		}
		if err == nil {
			k.discard(b, at)
		}
		return keyring.Delete(service, k.item(b, "index"))
	}))
}

// failed omits the library's message: on some systems it is the output of a program that got the
// secret.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errKeyringSlow), errors.Is(err, gateway.ErrSignIn):
		return &SignInError{Locked}
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return errors.New("the credentials are too large for the keyring")
	}
	return &SignInError{Locked}
}

// forget does nothing: a binding is removed by its name, and without the scope file nobody knows
// the names.
func (k *keyringBackend) forget() error { return nil }
