package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ids of users and groups that no account has.
const (
	hermesUser  = 54401
	sharedGroup = 54403
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
}

// homeOf makes a folder of a user that the others may enter.
func homeOf(t *testing.T, uid int) string {
	t.Helper()
	base := t.TempDir()
	for dir := base; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		wantErr(t, os.Chmod(dir, 0o755), nil)
	}
	dir := filepath.Join(base, "home")
	wantErr(t, os.Mkdir(dir, 0o755), nil)
	wantErr(t, os.Chown(dir, uid, uid), nil)
	return dir
}

func stat(t *testing.T, path string) (uid, gid uint32, mode fs.FileMode) {
	t.Helper()
	info := must[fs.FileInfo](t)(os.Lstat(path))
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid, info.Mode()
}

// A folder that two accounts share by its group: whatever either writes, the other can read and
// write, and nobody else.
func TestSharedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pairing")
	wantErr(t, os.Mkdir(dir, 0o770), nil)
	if os.Geteuid() == 0 {
		wantErr(t, os.Chown(dir, 0, sharedGroup), nil)
	}
	wantErr(t, os.Chmod(dir, 0o770|fs.ModeSetgid), nil)
	if !Shared(dir) || Shared(filepath.Dir(dir)) {
		t.Fatal("it is not known as shared")
	}
	defer syscall.Umask(syscall.Umask(0o077)) // as the service has it
	p := must[*Pairing](t)(OpenPairing(dir, "mobile"))
	code := must[string](t)(p.Request("tel-1", "Anna"))
	must[User](t)(p.Approve(code))
	// Hermes' own commands leave a file that only its account can read, and a path unit opens it
	// again.
	wantErr(t, os.Chmod(p.approvedPath(), 0o600), nil)
	must[User](t)(p.ApproveUser("tel-2", "Ben"))
	wantErr(t, p.Revoke("tel-1"), nil)
	_, group, _ := stat(t, dir)
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		if _, gid, mode := stat(t, filepath.Join(dir, e.Name())); gid != group || mode.Perm() != 0o660 {
			t.Errorf("%s has group %d and mode %v", e.Name(), gid, mode)
		}
	}
}

// A file outside of such a folder keeps the rights of its group and gives others none.
func TestGroupAndModeAreKept(t *testing.T) {
	for had, want := range map[fs.FileMode]fs.FileMode{0o600: 0o600, 0o640: 0o640, 0o660: 0o660, 0o644: 0o640, 0o666: 0o660, 0o604: 0o600, 0o400: 0o600} {
		p, _ := newPairing(t)
		write(t, p.approvedPath(), "{}")
		wantErr(t, os.Chmod(p.approvedPath(), had), nil)
		_, group, _ := stat(t, p.approvedPath())
		if os.Geteuid() == 0 {
			group = sharedGroup
			wantErr(t, os.Chown(p.approvedPath(), -1, sharedGroup), nil)
		}
		must[User](t)(p.ApproveUser("tel-1", ""))
		if _, gid, mode := stat(t, p.approvedPath()); mode.Perm() != want || want != 0o600 && gid != group {
			t.Errorf("%v becomes %v with group %d", had, mode, gid)
		}
	}
}

// Root who approves in the home of somebody else writes as that user, also where the user has put
// links there.
func TestRootWritesAsTheOwner(t *testing.T) {
	asRoot(t)
	home := homeOf(t, hermesUser)
	p := must[*Pairing](t)(OpenPairing(PairingDir(home), "mobile"))
	must[User](t)(p.ApproveUser("tel-1", ""))
	for _, path := range []string{p.dir, filepath.Dir(p.dir), p.approvedPath(), filepath.Join(p.dir, ".mobile-pairing.lock")} {
		if uid, gid, _ := stat(t, path); uid != hermesUser || gid != hermesUser {
			t.Errorf("%s belongs to %d:%d", path, uid, gid)
		}
	}
}

func TestLinksInAnotherHomeAreNotFollowed(t *testing.T) {
	asRoot(t)
	secrets := t.TempDir()
	victim := filepath.Join(secrets, "mobile-approved.json")
	write(t, victim, `{"of-root": {}}`)
	for name, plant := range map[string]func(home string) string{
		"the file": func(home string) string {
			dir := filepath.Join(home, "platforms", "pairing")
			wantErr(t, os.MkdirAll(dir, 0o755), nil)
			wantErr(t, os.Symlink(victim, filepath.Join(dir, "mobile-approved.json")), nil)
			return dir
		},
		"the folder": func(home string) string {
			wantErr(t, os.Mkdir(filepath.Join(home, "platforms"), 0o755), nil)
			wantErr(t, os.Symlink(secrets, filepath.Join(home, "platforms", "pairing")), nil)
			return filepath.Join(home, "platforms", "pairing")
		},
		"the old folder": func(home string) string {
			wantErr(t, os.Symlink(secrets, filepath.Join(home, "pairing")), nil)
			return filepath.Join(home, "pairing")
		},
	} {
		home := homeOf(t, hermesUser)
		dir := plant(home)
		wantErr(t, filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, hermesUser, hermesUser))
		}), nil)
		if got := PairingDir(home); got != dir {
			t.Fatalf("%s: it looks at %s", name, got)
		}
		p, err := OpenPairing(dir, "mobile")
		if err == nil {
			if p.Approved("of-root") {
				t.Errorf("%s: who stands in a file of root is approved", name)
			}
			_, err = p.ApproveUser("tel-1", "")
		}
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
		if text := string(must[[]byte](t)(os.ReadFile(victim))); text != `{"of-root": {}}` {
			t.Fatalf("%s: the file of root is %s", name, text)
		}
		if left := must[[]os.DirEntry](t)(os.ReadDir(secrets)); len(left) != 1 {
			t.Fatalf("%s: there is %v in the folder of root", name, left)
		}
	}
}
