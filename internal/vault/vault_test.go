package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zalando/go-keyring"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var (
	home  = Binding{Gateway: "home", Account: "ada"}
	away  = Binding{Gateway: "home", Account: "bob"}
	token = "token-that-nobody-may-see"
	key   = gateway.NewSecret(strings.Repeat("k", minHostKey))
)

func openKey(t *testing.T, dir string) *Vault {
	t.Helper()
	v, err := Open(Options{Dir: dir, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func save(t *testing.T, v *Vault, b Binding, value string) {
	t.Helper()
	if err := v.Save(b, Secrets{"token": gateway.NewSecret(value)}); err != nil {
		t.Fatal(err)
	}
}

func loaded(t *testing.T, v *Vault, b Binding) string {
	t.Helper()
	s, err := v.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	return s["token"].Reveal()
}

// problem is what kind of "sign in again" an error is.
func problem(err error) Problem {
	var e *SignInError
	if !errors.As(err, &e) || !errors.Is(err, gateway.ErrSignIn) {
		return Problem(fmt.Sprintf("not typed: %v", err))
	}
	return e.Problem
}

// behaves is what every kind of vault does.
func behaves(t *testing.T, v *Vault, again func() *Vault) {
	t.Helper()
	if _, err := v.Load(home); !errors.Is(err, ErrNone) {
		t.Fatalf("an empty vault: %v", err)
	}
	long := strings.Repeat("ключ ", 2000)
	save(t, v, home, token)
	save(t, v, away, long)
	save(t, v, home, token+"2")
	for _, v := range []*Vault{v, again()} {
		if got := loaded(t, v, home); got != token+"2" {
			t.Errorf("home has %q", got)
		}
		if got := loaded(t, v, away); got != long {
			t.Errorf("a long secret came back with %d bytes of %d", len(got), len(long))
		}
		if _, err := v.Load(Binding{Gateway: "other", Account: "ada"}); !errors.Is(err, ErrNone) {
			t.Errorf("another gateway: %v", err)
		}
	}
	for range 2 {
		if err := v.Drop(home); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := again().Load(home); !errors.Is(err, ErrNone) {
		t.Errorf("after Drop: %v", err)
	}
	if got := loaded(t, again(), away); got != long {
		t.Error("Drop took another account's")
	}
}

func TestHostKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openKey(t, dir)
	if state, err := v.State(); v.Kind() != HostKey || state != Ready || err != nil {
		t.Fatal(v.Kind(), state, err)
	}
	behaves(t, v, func() *Vault { return openKey(t, dir) })
	if _, err := Open(Options{Dir: dir, Key: gateway.NewSecret("short")}); err == nil {
		t.Error("a short key was taken")
	}
}

func TestPassphrase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	phrase := gateway.NewSecret("correct horse")
	v, err := Open(Options{Dir: dir, NoKeyring: true, Work: 10})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := v.State(); v.Kind() != File || state != Unmade || problem(err) != Locked {
		t.Fatal(v.Kind(), state, err)
	}
	if err := v.Save(home, Secrets{"token": gateway.NewSecret(token)}); problem(err) != Locked {
		t.Errorf("Save without a passphrase: %v", err)
	}
	if err := v.Unlock(gateway.NewSecret("seven77")); !errors.Is(err, ErrPassphrase) {
		t.Errorf("a short passphrase: %v", err)
	}
	if err := v.Unlock(phrase); err != nil {
		t.Fatal(err)
	}
	save(t, v, home, token)
	again, err := Open(Options{Dir: dir, NoKeyring: true, Work: 10})
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := again.State(); state != Closed {
		t.Fatal("reopened it is", state)
	}
	if _, err := again.Load(home); problem(err) != Locked {
		t.Errorf("Load of a closed vault: %v", err)
	}
	for _, wrong := range []string{"incorrect horse", ""} {
		if err := again.Unlock(gateway.NewSecret(wrong)); !errors.Is(err, ErrPassphrase) {
			t.Errorf("a wrong passphrase: %v", err)
		}
	}
	if err := again.Unlock(phrase); err != nil || loaded(t, again, home) != token {
		t.Errorf("the right one: %v", err)
	}
}

// Nothing in the folder holds a secret, and nobody else may read it.
func TestNothingPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openKey(t, dir)
	save(t, v, home, token)
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		for _, secret := range []string{token, key.Reveal(), "AGE-SECRET-KEY"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds %s in plain", d.Name(), secret)
			}
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v %v", d.Name(), info.Mode(), err)
		}
		return err
	})
	if err != nil || seen < 3 {
		t.Fatal(seen, err)
	}
	for _, s := range []string{fmt.Sprint(v.Load(home)), fmt.Sprintf("%+v %#v", v.options, v.options)} {
		if strings.Contains(s, token) || strings.Contains(s, key.Reveal()) {
			t.Errorf("printed: %s", s)
		}
	}
}

func TestWhatIsLost(t *testing.T) {
	t.Parallel()
	path := func(dir, name string) string { return filepath.Join(dir, name) }
	cut := func(dir, name string, to int) error {
		data, err := os.ReadFile(path(dir, name))
		if err != nil {
			return err
		}
		return os.WriteFile(path(dir, name), data[:min(to, len(data))], 0o600)
	}
	flip := func(dir, name string) error {
		data, err := os.ReadFile(path(dir, name))
		if err != nil {
			return err
		}
		data[len(data)-3] ^= 1
		return os.WriteFile(path(dir, name), data, 0o600)
	}
	for name, tc := range map[string]struct {
		harm func(dir string) error
		want Problem
	}{
		"the secrets are cut":    {func(dir string) error { return cut(dir, secretFile, 180) }, Damaged},
		"the secrets are empty":  {func(dir string) error { return cut(dir, secretFile, 0) }, Damaged},
		"one bit of the secrets": {func(dir string) error { return flip(dir, secretFile) }, Damaged},
		"the key is cut":         {func(dir string) error { return cut(dir, keyFile, 100) }, Damaged},
		"one bit of the key":     {func(dir string) error { return flip(dir, keyFile) }, Damaged},
		"the key is gone":        {func(dir string) error { return os.Remove(path(dir, keyFile)) }, LostKey},
		"a folder in the file's place": {func(dir string) error {
			return errors.Join(os.Remove(path(dir, secretFile)), os.Mkdir(path(dir, secretFile), 0o700))
		}, Unreadable},
		"the key of another vault": {func(dir string) error {
			other := t.TempDir()
			v, err := Open(Options{Dir: other, Key: key})
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path(v.options.Dir, keyFile))
			return errors.Join(err, os.WriteFile(path(dir, keyFile), data, 0o600))
		}, WrongKey},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			save(t, openKey(t, dir), home, token)
			if err := tc.harm(dir); err != nil {
				t.Fatal(err)
			}
			v := openKey(t, dir)
			_, err := v.Load(home)
			if problem(err) != tc.want {
				t.Errorf("Load: %v, want %s", err, tc.want)
			}
			if err := v.Save(home, Secrets{"token": gateway.NewSecret(token)}); problem(err) != tc.want {
				t.Errorf("Save goes over what is there: %v", err)
			}
			if err := v.Reset(); err != nil {
				t.Fatal(err)
			}
			if _, err := v.Load(home); !errors.Is(err, ErrNone) {
				t.Errorf("after Reset: %v", err)
			}
			save(t, v, home, "new")
		})
	}
}

func TestWrongHostKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, openKey(t, dir), home, token)
	v, err := Open(Options{Dir: dir, Key: gateway.NewSecret(strings.Repeat("w", minHostKey))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Load(home); problem(err) != WrongKey {
		t.Errorf("Load: %v", err)
	}
	// Without any key the file stays a file: no keyring is begun beside it.
	v, err = Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := v.State(); v.Kind() != File || state != Closed {
		t.Error(v.Kind(), state)
	}
	if loaded(t, openKey(t, dir), home) != token {
		t.Error("the right key opens it no more")
	}
}

// A file that was restored with a wider mode is read, and closed to others.
func TestWiderMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, openKey(t, dir), home, token)
	for _, name := range []string{secretFile, keyFile} {
		if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if loaded(t, openKey(t, dir), home) != token {
		t.Error("not read")
	}
	for _, name := range []string{secretFile, keyFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(name, info.Mode(), err)
		}
	}
}

// Vaults on one folder, as of several processes, lose nothing of one another.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	openKey(t, dir)
	var all sync.WaitGroup
	for i := range 6 {
		v := openKey(t, dir)
		all.Go(func() {
			for n := range 5 {
				b := Binding{Gateway: fmt.Sprint("g", i), Account: fmt.Sprint(n)}
				if err := v.Save(b, Secrets{"token": gateway.NewSecret(fmt.Sprint(i, n))}); err != nil {
					t.Error(err)
				}
				if _, err := v.Load(b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	v := openKey(t, dir)
	for i := range 6 {
		for n := range 5 {
			if got := loaded(t, v, Binding{Gateway: fmt.Sprint("g", i), Account: fmt.Sprint(n)}); got != fmt.Sprint(i, n) {
				t.Errorf("g%d/%d has %q", i, n, got)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*.tmp")); len(left) > 0 {
		t.Error("drafts are left:", left)
	}
}

// fakeKeyring puts the library's own fake in place; a bus is announced so that it is asked at all.
func fakeKeyring(t *testing.T, err error) {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	if err != nil {
		keyring.MockInitWithError(err)
	} else {
		keyring.MockInit()
	}
}

func TestKeyring(t *testing.T) {
	fakeKeyring(t, nil)
	dir := t.TempDir()
	open := func() *Vault {
		v, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if state, err := v.State(); v.Kind() != Keyring || state != Ready {
			t.Fatal(v.Kind(), state, err)
		}
		return v
	}
	v := open()
	behaves(t, v, open)

	// A piece that is gone, and an index that says nothing.
	ring := v.back.(*keyringBackend)
	save(t, v, home, token)
	at, err := ring.index(home)
	if err != nil {
		t.Fatal(err)
	}
	if err := keyring.Delete(service, ring.item(home, at.Generation+".0")); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Load(home); problem(err) != Damaged {
		t.Errorf("a piece is gone: %v", err)
	}
	if err := keyring.Set(service, ring.item(home, "index"), "{"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Load(home); problem(err) != Damaged {
		t.Errorf("no index: %v", err)
	}
	save(t, v, home, token)
	if loaded(t, v, home) != token {
		t.Error("signing in again does not mend it")
	}

	// It locks while we run, and is locked when we start: no file is begun instead.
	fakeKeyring(t, errors.New("locked, and "+token))
	if _, err := v.Load(home); problem(err) != Locked || strings.Contains(err.Error(), token) {
		t.Errorf("locked: %v", err)
	}
	if err := v.Save(home, Secrets{"token": gateway.NewSecret(token)}); problem(err) != Locked || strings.Contains(err.Error(), token) {
		t.Errorf("locked: %v", err)
	}
	locked, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := locked.State(); locked.Kind() != Keyring || state != Unusable || problem(err) != Locked {
		t.Error(locked.Kind(), state, err)
	}
	if _, err := locked.Load(home); problem(err) != Locked {
		t.Errorf("locked at the start: %v", err)
	}
	// The person decides to go on without it.
	if err := locked.Reset(); err != nil {
		t.Fatal(err)
	}
	if state, _ := locked.State(); locked.Kind() != File || state != Unmade {
		t.Error(locked.Kind(), state)
	}
}

func TestTwoFoldersInOneKeyring(t *testing.T) {
	fakeKeyring(t, nil)
	one, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	save(t, one, home, token)
	if _, err := other.Load(home); !errors.Is(err, ErrNone) {
		t.Errorf("the other folder: %v", err)
	}
}

// Without a bus no bus is started, and the file is taken.
func TestNoBus(t *testing.T) {
	if present(fmt.Sprintf("/run/user/%d/bus", os.Getuid())) {
		t.Skip("this machine has a session bus")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	v, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := v.State(); v.Kind() != File || state != Unmade {
		t.Error(v.Kind(), state)
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		t.Error("a bus was started")
	}
}
