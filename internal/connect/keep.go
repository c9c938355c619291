package connect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/atomicfile"
	"hermes-mobile/internal/vault"
)

// ProfileFile is the name of the profile in the data folder. It holds no secret.
const ProfileFile = "gateway.json"

// secretName is under which name the vault has the credentials, which are one secret with their binding inside.
const secretName = "credentials"

// ErrNoProfile: nothing was set up here.
var ErrNoProfile = errors.New("no gateway is set up")

// Keep is where the profile of the gateway and its credentials are at rest. Safe for concurrent use.
type Keep struct {
	Vault *vault.Vault

	path string
	mu   sync.Mutex
}

// NewKeep keeps the profile in a data folder and the credentials in a vault.
func NewKeep(dir string, v *vault.Vault) *Keep {
	return &Keep{Vault: v, path: filepath.Join(dir, ProfileFile)}
}

// Profile reads the profile. legacy are credentials that one of the first form still held in itself: they are to be saved, and the
// profile written anew. ErrNoProfile: there is none.
func (k *Keep) Profile() (p gateway.Profile, legacy gateway.Credentials, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, err := os.ReadFile(k.path)
	if errors.Is(err, os.ErrNotExist) {
		return p, legacy, ErrNoProfile
	} else if err != nil {
		return p, legacy, fmt.Errorf("the profile of the gateway: %w", err)
	}
	if p, err = gateway.ParseProfile(data); err != nil {
		return p, legacy, fmt.Errorf("the profile of the gateway, %s: %w", k.path, err)
	}
	legacy, err = gateway.LegacyCredentials(data)
	return p, legacy, err
}

// SaveProfile writes the profile: after a crash there is the old one or the new one.
func (k *Keep) SaveProfile(p gateway.Profile) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, err := p.MarshalJSON()
	if err != nil {
		return fmt.Errorf("the profile of the gateway: %w", err)
	}
	if err := atomicfile.Replace(k.path, append(data, '\n'), atomicfile.Options{}); err != nil {
		return fmt.Errorf("the profile of the gateway: %w", err)
	}
	return nil
}

// SetAside renames a profile that cannot be read, so that a new one takes its place and nothing is lost.
func (k *Keep) SetAside() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return os.Rename(k.path, k.path+".unreadable")
}

func bindingOf(p gateway.Profile) vault.Binding {
	b := vault.Binding{Gateway: p.ID}
	if p.Auth == gateway.AuthPassword {
		b.Account = p.Username
	}
	return b
}

// Credentials returns what is kept for a profile, and nothing of another gateway or account. Where that cannot be read the error is
// gateway.ErrSignIn; vault.ErrNone says that nothing is kept.
func (k *Keep) Credentials(p gateway.Profile) (gateway.Credentials, error) {
	secrets, err := k.Vault.Load(bindingOf(p))
	if err != nil {
		return gateway.Credentials{}, err
	}
	c, err := gateway.ParseCredentials(secrets[secretName])
	if err != nil {
		return gateway.Credentials{}, &vault.SignInError{Problem: vault.Damaged}
	}
	return c.For(p), nil
}

// SaveCredentials keeps the credentials of a profile. Empty ones are forgotten.
func (k *Keep) SaveCredentials(p gateway.Profile, c gateway.Credentials) error {
	if c = c.For(p); c.Token.IsZero() && c.Password.IsZero() && !c.HasSession() {
		return k.Vault.Drop(bindingOf(p))
	}
	secret, err := c.Export()
	if err != nil {
		return errors.New("the credentials cannot be written")
	}
	return k.Vault.Save(bindingOf(p), vault.Secrets{secretName: secret})
}

// forget drops what is kept for a profile that is no longer used.
func (k *Keep) forget(p gateway.Profile) error { return k.Vault.Drop(bindingOf(p)) }
