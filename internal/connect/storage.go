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

// secretName is the vault's name for the credentials, which are one secret that contains its
// binding.
const secretName = "credentials"

// ErrNoProfile means that no gateway was connected yet.
var ErrNoProfile = errors.New("no gateway is connected")

// Storage stores the gateway's profile and its credentials. It is safe for concurrent use.
type Storage struct {
	Vault *vault.Vault

	path string
	mu   sync.Mutex
}

// NewStorage stores the profile in a data folder and the credentials in a vault.
func NewStorage(dir string, v *vault.Vault) *Storage {
	return &Storage{Vault: v, path: filepath.Join(dir, ProfileFile)}
}

// Profile reads the profile. It returns ErrNoProfile if none is saved. A profile of the first
// schema still contains its credentials: the caller must save these legacy credentials and the
// profile.
func (s *Storage) Profile() (p gateway.Profile, legacy gateway.Credentials, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return p, legacy, ErrNoProfile
	} else if err != nil {
		return p, legacy, fmt.Errorf("read the gateway's profile: %w", err)
	}
	if p, err = gateway.ParseProfile(data); err != nil {
		return p, legacy, fmt.Errorf("read the gateway's profile %s: %w", s.path, err)
	}
	legacy, err = gateway.LegacyCredentials(data)
	return p, legacy, err
}

// SaveProfile replaces the profile atomically.
func (s *Storage) SaveProfile(p gateway.Profile) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := p.MarshalJSON()
	if err != nil {
		return fmt.Errorf("write the gateway's profile: %w", err)
	}
	if err := atomicfile.Replace(s.path, append(data, '\n'), atomicfile.Options{}); err != nil {
		return fmt.Errorf("write the gateway's profile: %w", err)
	}
	return nil
}

// MoveAside renames an unreadable profile, so that a new one can take its place without losing it.
func (s *Storage) MoveAside() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return os.Rename(s.path, s.path+".unreadable")
}

func bindingOf(p gateway.Profile) vault.Binding {
	b := vault.Binding{Gateway: p.ID}
	if p.Auth == gateway.AuthPassword {
		b.Account = p.Username
	}
	return b
}

// Credentials returns the stored credentials of a profile, and never those of another gateway or
// account. The error is gateway.ErrSignIn if they are unreadable, and vault.ErrNone if there are
// none.
func (s *Storage) Credentials(p gateway.Profile) (gateway.Credentials, error) {
	secrets, err := s.Vault.Load(bindingOf(p))
	if err != nil {
		return gateway.Credentials{}, err
	}
	c, err := gateway.ParseCredentials(secrets[secretName])
	if err != nil {
		return gateway.Credentials{}, &vault.SignInError{Problem: vault.Damaged}
	}
	return c.For(p), nil
}

// SaveCredentials stores the credentials of a profile. It deletes them if c is empty.
func (s *Storage) SaveCredentials(p gateway.Profile, c gateway.Credentials) error {
	if c = c.For(p); c.Token.IsZero() && c.Password.IsZero() && !c.HasSession() {
		return s.Vault.Drop(bindingOf(p))
	}
	secret, err := c.Export()
	if err != nil {
		return errors.New("encode the credentials: unsupported form")
	}
	return s.Vault.Save(bindingOf(p), vault.Secrets{secretName: secret})
}

// forget deletes the credentials of a profile that is no longer used.
func (s *Storage) forget(p gateway.Profile) error { return s.Vault.Drop(bindingOf(p)) }
