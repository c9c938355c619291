// Package vault stores the few secrets of a gateway: its token, password and cookies. They are in
// the keyring of the operating system if one works, else in a file that age encrypts, and never
// anywhere in plain text. Unreadable secrets are a [SignInError]: the person signs in again, and
// nothing else is lost.
package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"hermes-mobile/gateway"
)

// ErrNone reports that nothing is stored for this binding.
var ErrNone = errors.New("no credential is stored")

// ErrPassphrase reports that the passphrase is wrong, or too short for a new vault. Its text says
// which.
var ErrPassphrase = errors.New("invalid passphrase")

// Problem is the reason why secrets can't be read.
type Problem string

// The problems of a [SignInError].
const (
	Locked     Problem = "locked"     // a passphrase is needed, or the keyring is locked or gone
	WrongKey   Problem = "wrong_key"  // the key opens another vault
	LostKey    Problem = "lost_key"   // the file is there, but not its key
	Damaged    Problem = "damaged"    // the file or item is corrupt
	Unreadable Problem = "unreadable" // the system denies access
)

var problemWords = map[Problem]string{
	Locked:     "the stored credentials are locked",
	WrongKey:   "the stored credentials belong to another key",
	LostKey:    "the key of the stored credentials is gone",
	Damaged:    "the stored credentials are damaged",
	Unreadable: "the stored credentials cannot be read",
}

// SignInError reports that stored secrets can't be read. It matches [gateway.ErrSignIn], and never
// contains a secret or a library's message about one.
type SignInError struct{ Problem Problem }

func (e *SignInError) Error() string { return problemWords[e.Problem] + ": sign in again" }

// Is makes errors.Is match gateway.ErrSignIn.
func (e *SignInError) Is(target error) bool { return target == gateway.ErrSignIn }

// Binding is the owner of secrets. Another gateway or account has none of them.
type Binding struct {
	Gateway string // the id of the gateway's profile, or its address
	Account string // empty if there are no accounts
}

// Secrets are stored by name, such as token.
type Secrets map[string]gateway.Secret

// Kind is where secrets are stored.
type Kind string

// The kinds of vaults.
const (
	Keyring Kind = "keyring" // of the operating system
	File    Kind = "file"    // encrypted by a passphrase
	HostKey Kind = "key"     // a file encrypted by a key of the host program
)

// State is what a vault needs before use.
type State string

// The states of a vault.
const (
	Ready    State = "ready"
	Closed   State = "closed" // Unlock opens it
	Unmade   State = "unmade" // Unlock creates it
	Unusable State = "lost"   // Reset starts over; Load returns the reason
)

// Minimum lengths of a passphrase, and of a host program's key.
const (
	MinPassphrase = 8
	minHostKey    = 32
)

// Options configure a vault.
type Options struct {
	Dir string // the data folder
	// Key comes from a host program that has a safe place for it. It takes precedence over the
	// keyring.
	Key gateway.Secret
	// NoKeyring disables the system's keyring.
	NoKeyring bool
	// Work is the cost of scrypt for a passphrase, as a power of two. 0: 18, about a second on a
	// small machine.
	Work int
}

// backend stores secrets. Its methods are called one at a time.
type backend interface {
	load(Binding) (Secrets, error)
	save(Binding, Secrets) error
	drop(Binding) error
	forget() error // everything, and the key
}

// Vault stores secrets. It is safe for concurrent use, also by several processes on one folder.
type Vault struct {
	options Options

	mu    sync.Mutex
	kind  Kind
	state State
	why   error // of Unusable and Closed
	back  backend
}

// Open opens the vault of a data folder, and chooses its kind the first time. A vault that
// needs a passphrase is no error: State reports it. Open may wait while the system asks the person
// to unlock the keyring.
func Open(o Options) (*Vault, error) {
	if !o.Key.IsZero() && len(o.Key.Reveal()) < minHostKey {
		return nil, fmt.Errorf("the key of the host program is shorter than %d characters: use 32 random bytes", minHostKey)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the credentials: %w", err)
	}
	if o.Work == 0 {
		o.Work = phraseWork
	}
	v := &Vault{options: o}
	return v, v.choose()
}

// choose sets kind, state and back. It never switches an existing vault to another kind: its
// secrets would seem lost.
func (v *Vault) choose() error {
	dir := v.options.Dir
	file := &fileBackend{dir: dir}
	marked, err := readScope(dir)
	switch {
	case err != nil:
		v.kind, v.state, v.why = Keyring, Unusable, &SignInError{Unreadable}
	case !v.options.Key.IsZero():
		v.kind, v.back = HostKey, file
		v.state, v.why = Ready, nil
		if err := file.open(v.options.Key.Reveal(), hostWork); err != nil {
			return v.unusable(err)
		}
	case file.exists():
		v.kind, v.back, v.state, v.why = File, file, Closed, &SignInError{Locked}
		if !file.hasKey() {
			v.state, v.why = Unusable, &SignInError{LostKey}
		}
	case marked != "":
		ring := &keyringBackend{scope: marked}
		v.kind, v.back, v.state, v.why = Keyring, ring, Ready, nil
		if v.options.NoKeyring || !ring.works() {
			v.state, v.why = Unusable, &SignInError{Locked}
		}
	default:
		ring := &keyringBackend{scope: newScope()}
		if !v.options.NoKeyring && ring.works() {
			v.kind, v.back, v.state, v.why = Keyring, ring, Ready, nil
			return writeScope(dir, ring.scope)
		}
		v.kind, v.back, v.state, v.why = File, file, Unmade, &SignInError{Locked}
	}
	return nil
}

func (v *Vault) unusable(err error) error {
	if !errors.Is(err, gateway.ErrSignIn) {
		return err
	}
	v.state, v.why = Unusable, err
	return nil
}

// Kind returns where secrets are stored.
func (v *Vault) Kind() Kind {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kind
}

// State returns whether the vault can be used. The error is the reason if not.
func (v *Vault) State() (State, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.why
}

// Unlock opens a vault that is Closed, or creates one that is Unmade. A wrong passphrase is
// ErrPassphrase, and the caller may try again.
func (v *Vault) Unlock(passphrase gateway.Secret) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Closed && v.state != Unmade {
		return nil
	}
	if v.state == Unmade && len([]rune(passphrase.Reveal())) < MinPassphrase {
		return fmt.Errorf("%w: use at least %d characters", ErrPassphrase, MinPassphrase)
	}
	err := v.back.(*fileBackend).open(passphrase.Reveal(), v.options.Work)
	var lost *SignInError
	switch {
	case errors.As(err, &lost) && lost.Problem == WrongKey:
		return fmt.Errorf("%w: it doesn't match the stored credentials", ErrPassphrase)
	case err != nil:
		return errors.Join(err, v.unusable(err))
	}
	v.state, v.why = Ready, nil
	return nil
}

// Load returns the secrets of a binding: ErrNone if there are none, a [SignInError] if they can't
// be read.
func (v *Vault) Load(b Binding) (Secrets, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Ready {
		return nil, v.why
	}
	return v.back.load(b)
}

// Save replaces the secrets of a binding. They are on disk when Save returns.
func (v *Vault) Save(b Binding, s Secrets) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Ready {
		return v.why
	}
	return v.back.save(b, s)
}

// Drop removes the secrets of a binding. It is no error if there are none.
func (v *Vault) Drop(b Binding) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Ready {
		return v.why
	}
	return v.back.drop(b)
}

// Reset removes everything, including what can't be read, and starts over: for a person who signs
// in again.
func (v *Vault) Reset() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.back != nil {
		// An item of a keyring that can't be reached stays behind. Without its marker nobody reads
		// it again.
		if err := v.back.forget(); err != nil && v.kind != Keyring {
			return fmt.Errorf("remove the credentials: %w", err)
		}
	}
	if err := os.Remove(filepath.Join(v.options.Dir, scopeFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the credentials: %w", err)
	}
	v.back = nil
	return v.choose()
}
