package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/atomicfile"
)

// Files in the data folder. The key file has an age identity, encrypted with the passphrase or the
// host program's key. The other one has the secrets, encrypted to that identity, so refreshed
// cookies are stored without the cost of scrypt. age's own command opens both.
const (
	keyFile    = "vault.key.age"
	secretFile = "vault.age"
	lockName   = "vault.lock"
)

// Cost of scrypt, as a power of two. A host program's key is already random.
const (
	phraseWork = 18
	hostWork   = 10
	mostWork   = 20
)

// maxVault bounds what is read. A token, a password and a few cookies take some kilobytes.
const maxVault = 1 << 20

type fileBackend struct {
	dir      string
	identity *age.X25519Identity
}

// contents is the plaintext.
type contents struct {
	Schema   int     `json:"schema"`
	Bindings []entry `json:"bindings"`
}

type entry struct {
	Gateway string            `json:"gateway"`
	Account string            `json:"account"`
	Secrets map[string]string `json:"secrets"`
}

func (f *fileBackend) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fileBackend) exists() bool { return present(f.path(keyFile)) || present(f.path(secretFile)) }

func (f *fileBackend) hasKey() bool { return present(f.path(keyFile)) }

func present(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// open reads the identity, or creates one if there are no files.
func (f *fileBackend) open(key string, work int) error {
	unlock, err := lock(f.path(lockName))
	if err != nil {
		return err
	}
	defer unlock()
	if !f.hasKey() {
		if f.exists() {
			return &SignInError{LostKey}
		}
		return f.makeIdentity(key, work)
	}
	opener, err := age.NewScryptIdentity(key)
	if err != nil {
		return &SignInError{WrongKey} // the key is empty
	}
	opener.SetMaxWorkFactor(mostWork)
	text, err := f.decrypt(keyFile, opener)
	if err != nil {
		return err
	}
	identity, err := age.ParseX25519Identity(string(bytes.TrimSpace(text)))
	if err != nil {
		return &SignInError{Damaged} // the cause might quote it
	}
	f.identity = identity
	return nil
}

func (f *fileBackend) makeIdentity(key string, work int) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("create a key: %w", err)
	}
	recipient, err := age.NewScryptRecipient(key)
	if err != nil {
		return ErrPassphrase
	}
	recipient.SetWorkFactor(work)
	if err := f.encrypt(keyFile, []byte(identity.String()+"\n"), recipient); err != nil {
		return err
	}
	f.identity = identity
	return nil
}

func (f *fileBackend) load(b Binding) (Secrets, error) {
	all, err := f.read()
	if err != nil {
		return nil, err
	}
	for _, e := range all.Bindings {
		if e.Gateway == b.Gateway && e.Account == b.Account {
			out := Secrets{}
			for name, value := range e.Secrets {
				out[name] = gateway.NewSecret(value)
			}
			return out, nil
		}
	}
	return nil, ErrNone
}

func (f *fileBackend) save(b Binding, s Secrets) error {
	return f.change(b, &entry{Gateway: b.Gateway, Account: b.Account, Secrets: revealed(s)})
}

func (f *fileBackend) drop(b Binding) error { return f.change(b, nil) }

// change replaces or removes the entry of a binding.
func (f *fileBackend) change(b Binding, with *entry) error {
	unlock, err := lock(f.path(lockName))
	if err != nil {
		return err
	}
	defer unlock()
	all, err := f.read()
	if err != nil {
		return err
	}
	kept := contents{Schema: 1}
	for _, e := range all.Bindings {
		if e.Gateway != b.Gateway || e.Account != b.Account {
			kept.Bindings = append(kept.Bindings, e)
		}
	}
	if with != nil {
		kept.Bindings = append(kept.Bindings, *with)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return errors.New("cannot encode the credentials as JSON")
	}
	return f.encrypt(secretFile, text, f.identity.Recipient())
}

func (f *fileBackend) read() (contents, error) {
	if !present(f.path(secretFile)) {
		return contents{Schema: 1}, nil
	}
	text, err := f.decrypt(secretFile, f.identity)
	if err != nil {
		return contents{}, err
	}
	var all contents
	if json.Unmarshal(text, &all) != nil || all.Schema != 1 {
		return contents{}, &SignInError{Damaged} // the cause might quote a secret
	}
	return all, nil
}

func (f *fileBackend) forget() error {
	f.identity = nil
	for _, name := range []string{secretFile, keyFile} { // in this order: a key alone is an empty vault
		if err := os.RemoveAll(f.path(name)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fileBackend) decrypt(name string, identity age.Identity) ([]byte, error) {
	in, err := os.Open(f.path(name))
	if err != nil {
		return nil, &SignInError{Unreadable}
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &SignInError{Unreadable}
	} else if info.Mode().Perm()&0o077 != 0 {
		_ = in.Chmod(0o600) // a copy or a backup may have lost the mode; some file systems have none
	}
	plain, err := age.Decrypt(io.LimitReader(in, maxVault), identity)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, &SignInError{WrongKey}
	} else if err != nil {
		return nil, &SignInError{Damaged}
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return nil, &SignInError{Damaged}
	}
	return text, nil
}

func (f *fileBackend) encrypt(name string, text []byte, to age.Recipient) error {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("encrypt the credentials: %w", err)
	}
	if err := atomicfile.Replace(f.path(name), out.Bytes(), atomicfile.Options{}); err != nil {
		return fmt.Errorf("store the credentials: %w", err)
	}
	return nil
}

func revealed(s Secrets) map[string]string {
	out := map[string]string{}
	for name, secret := range s {
		if !secret.IsZero() {
			out[name] = secret.Reveal()
		}
	}
	return out
}
