// Package vault keeps the few secrets of a gateway at rest: its token, password and cookies. They are in the keyring of the operating
// system where one really works, else in a file that age encrypts, and never anywhere in plain. What cannot be read any more is a
// [SignInError]: the person signs in again, and nothing else is lost.
package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"hermes-mobile/gateway"
)

// ErrNone: nothing is kept for this binding.
var ErrNone = errors.New("no credential is kept")

// ErrPassphrase: the passphrase is wrong, or too short for a new vault. See the text.
var ErrPassphrase = errors.New("the passphrase cannot be used")

// Problem says why secrets cannot be read.
type Problem string

// The problems of a [SignInError].
const (
	Locked     Problem = "locked"     // a passphrase is needed, or the keyring is locked or gone
	WrongKey   Problem = "wrong_key"  // the key opens another vault
	LostKey    Problem = "lost_key"   // the file is there and what opens it is not
	Damaged    Problem = "damaged"    // the file or item was changed or cut
	Unreadable Problem = "unreadable" // the system does not let it be read
)

var problemWords = map[Problem]string{
	Locked:     "the stored credentials are locked",
	WrongKey:   "the stored credentials belong to another key",
	LostKey:    "the key of the stored credentials is gone",
	Damaged:    "the stored credentials are damaged",
	Unreadable: "the stored credentials cannot be read",
}

// SignInError: secrets are kept and cannot be had. It is [gateway.ErrSignIn], and never holds a secret or what a library said of one.
type SignInError struct{ Problem Problem }

func (e *SignInError) Error() string { return problemWords[e.Problem] + ": sign in again" }

// Is makes it gateway.ErrSignIn.
func (e *SignInError) Is(target error) bool { return target == gateway.ErrSignIn }

// Binding is whose secrets they are: another gateway or account has none of them.
type Binding struct {
	Gateway string // the id of the gateway's profile, or its address
	Account string // empty where there are no accounts
}

// Secrets are kept by name, such as token.
type Secrets map[string]gateway.Secret

// Kind tells where secrets are kept.
type Kind string

// The kinds of vaults.
const (
	Keyring Kind = "keyring" // of the operating system
	File    Kind = "file"    // encrypted by a passphrase
	HostKey Kind = "key"     // a file encrypted by a key that the host program hands in
)

// State tells what a vault needs before it can be used.
type State string

// The states of a vault.
const (
	Ready    State = "ready"
	Closed   State = "closed" // Unlock opens it
	Unmade   State = "unmade" // Unlock makes it
	Unusable State = "lost"   // Reset begins anew; Load says why
)

// The fewest characters of a passphrase, and of a host program's key.
const (
	MinPassphrase = 8
	minHostKey    = 32
)

// Options says where a vault is.
type Options struct {
	Dir string // the data folder
	// Key is handed in by a host program that has a safe place for it. It comes before the keyring.
	Key gateway.Secret
	// NoKeyring leaves the system's keyring alone.
	NoKeyring bool
	// Work is what scrypt does to a passphrase, as a power of two. 0: 18, about a second on a small machine.
	Work int
}

// backend is a place for secrets. Its methods are called one at a time.
type backend interface {
	load(Binding) (Secrets, error)
	save(Binding, Secrets) error
	drop(Binding) error
	forget() error // everything, and the key
}

// Vault keeps secrets. All methods may be called concurrently, also by several processes on one folder.
type Vault struct {
	options Options

	mu    sync.Mutex
	kind  Kind
	state State
	why   error // of Unusable and Closed
	back  backend
}

// Open looks for the vault of a data folder, and chooses its kind where there is none yet. A vault that needs a passphrase is no error:
// State says so. It may wait while the system asks the person to unlock the keyring.
func Open(o Options) (*Vault, error) {
	if !o.Key.IsZero() && len(o.Key.Reveal()) < minHostKey {
		return nil, fmt.Errorf("the key of the host program is shorter than %d characters: make it of 32 random bytes", minHostKey)
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

// choose sets kind, state and back. A vault that exists is never left for another kind by itself: what is in it would seem lost.
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

// Kind tells where secrets are kept.
func (v *Vault) Kind() Kind {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kind
}

// State tells whether the vault can be used. The error says why not.
func (v *Vault) State() (State, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.why
}

// Unlock opens a vault that is Closed, or makes one that is Unmade. A wrong passphrase is ErrPassphrase, and may be tried again.
func (v *Vault) Unlock(passphrase gateway.Secret) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Closed && v.state != Unmade {
		return nil
	}
	if v.state == Unmade && len([]rune(passphrase.Reveal())) < MinPassphrase {
		return fmt.Errorf("%w: take at least %d characters", ErrPassphrase, MinPassphrase)
	}
	err := v.back.(*fileBackend).open(passphrase.Reveal(), v.options.Work)
	var lost *SignInError
	switch {
	case errors.As(err, &lost) && lost.Problem == WrongKey:
		return fmt.Errorf("%w: it is not the one of the stored credentials", ErrPassphrase)
	case err != nil:
		return errors.Join(err, v.unusable(err))
	}
	v.state, v.why = Ready, nil
	return nil
}

// Load returns what is kept for a binding: ErrNone where that is nothing, a [SignInError] where it cannot be read.
func (v *Vault) Load(b Binding) (Secrets, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Ready {
		return nil, v.why
	}
	return v.back.load(b)
}

// Save keeps these secrets for a binding, in place of what was kept for it. It is on disk when Save returns.
func (v *Vault) Save(b Binding, s Secrets) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Ready {
		return v.why
	}
	return v.back.save(b, s)
}

// Drop forgets what is kept for a binding. That nothing is kept is no error.
func (v *Vault) Drop(b Binding) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != Ready {
		return v.why
	}
	return v.back.drop(b)
}

// Reset forgets everything, also what cannot be read, and begins anew: for a person who signs in again.
func (v *Vault) Reset() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.back != nil {
		// An item of a keyring that cannot be reached stays behind; without its marker nobody asks for it again.
		if err := v.back.forget(); err != nil && v.kind != Keyring {
			return fmt.Errorf("forget the credentials: %w", err)
		}
	}
	if err := os.Remove(filepath.Join(v.options.Dir, scopeFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget the credentials: %w", err)
	}
	v.back = nil
	return v.choose()
}
