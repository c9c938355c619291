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
	// scopeFile says that the secrets of this folder are in the keyring, and under which name, so that two folders keep apart.
	scopeFile = "vault.keyring"
	service   = "hermes-mobile"
	// pieceSize is what every keyring takes as one item: Windows stops at 2560 bytes, macOS near 3000 with base64.
	pieceSize = 1800
	// keyringPatience is how long the system may take, which asks the person for a password perhaps.
	keyringPatience = 90 * time.Second
)

var errKeyringSlow = errors.New("the keyring does not answer")

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
		return fmt.Errorf("the folder of the credentials: %w", err)
	}
	return nil
}

// keyringBackend keeps a binding as an index item, which names a generation of pieces: the index is written last, so a crash in
// between leaves what was there.
type keyringBackend struct{ scope string }

type index struct {
	Generation string `json:"generation"`
	Pieces     int    `json:"pieces"`
	Sum        string `json:"sum"`
}

// works writes, reads and deletes an item: a keyring that merely answers may be locked, or take nothing.
func (k *keyringBackend) works() bool {
	if !reachable() {
		return false
	}
	name, value := k.scope+"/probe-"+newScope(), newScope()
	err := patiently(func() error {
		if err := keyring.Set(service, name, value); err != nil {
			return err
		}
		got, err := keyring.Get(service, name)
		if e := keyring.Delete(service, name); err == nil {
			err = e
		}
		if err == nil && got != value {
			err = errors.New("the keyring gives back something else")
		}
		return err
	})
	return err == nil
}

// reachable keeps the D-Bus library from starting a bus of its own where there is none: it would hold nothing and run on.
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

// patiently bounds a call that a dialog of the system may hold up. The call cannot be taken back, so it is left to itself then, and ends
// when the person answers the dialog or the process ends.
func patiently(call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	late := time.NewTimer(keyringPatience)
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
	err = patiently(func() error {
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
	text := base64.StdEncoding.EncodeToString(plain) // pieces may be cut anywhere, and some keyrings take text only
	return failed(patiently(func() error {
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

// discard deletes pieces that no index names any more. What stays behind is of no use to anybody who cannot read the rest.
func (k *keyringBackend) discard(b Binding, at index) {
	for n := range at.Pieces {
		_ = keyring.Delete(service, k.item(b, fmt.Sprintf("%s.%d", at.Generation, n)))
	}
}

func (k *keyringBackend) drop(b Binding) error {
	return failed(patiently(func() error {
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

// failed leaves out what the library says: on some systems that is the output of a program that was given the secret.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errKeyringSlow), errors.Is(err, gateway.ErrSignIn):
		return &SignInError{Locked}
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return errors.New("the keyring does not take credentials of this size")
	}
	return &SignInError{Locked}
}

// forget has nothing to do: a binding is dropped by its name, and without the scope's file nobody knows the names.
func (k *keyringBackend) forget() error { return nil }
