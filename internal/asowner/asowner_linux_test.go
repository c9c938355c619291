package asowner

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// somebody is the id of a user without an account or any rights.
const somebody = 54321

func root(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root has rights to give up")
	}
}

// theirs creates a folder that belongs to somebody, inside a folder of root.
func theirs(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for dir := base; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		ok(t, os.Chmod(dir, 0o755)) // so that other users can reach the folder
	}
	dir := filepath.Join(base, "home")
	ok(t, os.Mkdir(dir, 0o700))
	ok(t, os.Chown(dir, somebody, somebody))
	return dir
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesBelongToTheOwnerOfTheFolder(t *testing.T) {
	root(t)
	dir := theirs(t)
	path := filepath.Join(dir, "new", "file")
	ok(t, Do(path, func() error {
		return errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600))
	}))
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Lstat(p)
		ok(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != somebody || st.Gid != somebody {
			t.Errorf("%s belongs to %d:%d", p, st.Uid, st.Gid)
		}
	}
	if data, _, err := ReadFile(path, 1); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
}

// Root follows a link in another user's folder only to files that this user may read or write,
// whichever part of the path the link is.
func TestLinksLeadNoFurtherThanTheirOwner(t *testing.T) {
	root(t)
	dir := theirs(t)
	secrets := t.TempDir()
	secret := filepath.Join(secrets, "secret")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o660} { // the group of root may read the last two
		ok(t, os.WriteFile(secret, []byte("of root"), mode))
		ok(t, os.Chmod(secret, mode))
		for _, l := range [][2]string{{"file", secret}, {"folder", secrets}, {"hop", filepath.Join(dir, "file")}} {
			name, target := l[0], l[1]
			link := filepath.Join(dir, name)
			_ = os.Remove(link)
			ok(t, os.Symlink(target, link))
			ok(t, os.Lchown(link, somebody, somebody))
			path := link
			if name == "folder" {
				path = filepath.Join(link, "secret")
			}
			if data, _, err := ReadFile(path, 100); err == nil || !strings.Contains(err.Error(), "54321") {
				t.Errorf("%s with mode %v was read: %q, %v", name, mode, data, err)
			}
			if err := Do(path, func() error { return os.WriteFile(path, []byte("of somebody"), 0o600) }); err == nil {
				t.Errorf("%s with mode %v was written", name, mode)
			}
			if err := Do(path, func() error { return os.WriteFile(filepath.Join(secrets, "new"), nil, 0o600) }); err == nil {
				t.Error("a file was made in a folder of root")
			}
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "of root" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestWhoControlsAPath(t *testing.T) {
	root(t)
	dir := theirs(t)
	base := filepath.Dir(dir)
	mine := filepath.Join(base, "mine")
	ok(t, os.Mkdir(mine, 0o755))
	inside := filepath.Join(dir, "of-root")
	ok(t, os.Mkdir(inside, 0o755)) // belongs to root, but somebody can replace it
	ok(t, os.Symlink(dir, filepath.Join(mine, "to-them")))
	ok(t, os.Symlink("../home/of-root", filepath.Join(mine, "through-them")))
	ok(t, os.Symlink(mine, filepath.Join(mine, "to-mine")))
	ok(t, os.Symlink(mine, filepath.Join(base, "their-link")))
	ok(t, os.Lchown(filepath.Join(base, "their-link"), somebody, somebody))
	for path, want := range map[string]bool{
		mine: false, filepath.Join(mine, "none", "below"): false, filepath.Join(mine, "to-mine", "x"): false,
		dir: true, inside: true, filepath.Join(inside, "x"): true, filepath.Join(dir, "none"): true,
		filepath.Join(mine, "to-them"): true, filepath.Join(mine, "through-them"): true, filepath.Join(base, "their-link"): true,
	} {
		u, other, err := Of(path)
		if err != nil || other != want || other && u.UID != somebody {
			t.Errorf("%s: %+v %v %v", path, u, other, err)
		}
	}
	file := filepath.Join(mine, "file") // belongs to somebody, in a folder that only root can change
	ok(t, os.WriteFile(file, nil, 0o600))
	ok(t, os.Chown(file, somebody, somebody))
	if u, other, err := Of(file); err != nil || other {
		t.Errorf("a file: %+v %v %v", u, other, err)
	}
	loop := filepath.Join(mine, "loop")
	ok(t, os.Symlink(loop, loop))
	if _, _, err := Of(filepath.Join(loop, "x")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}

// Only the thread of the call has the other rights, and only during the call, even among many
// concurrent calls and goroutines.
func TestOtherGoroutinesKeepTheirRights(t *testing.T) {
	root(t)
	dir := theirs(t)
	secret := filepath.Join(t.TempDir(), "secret")
	ok(t, os.WriteFile(secret, nil, 0o600))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if err := Do(dir, func() error {
					if _, err := os.ReadFile(secret); !errors.Is(err, fs.ErrPermission) {
						return errors.New("somebody can read a file of root")
					}
					// A nested call in a folder of root keeps the rights of the user.
					return Do(filepath.Dir(secret), func() error {
						if _, err := os.ReadFile(secret); !errors.Is(err, fs.ErrPermission) {
							return errors.New("a nested call restores the rights of root")
						}
						return nil
					})
				}); err != nil {
					t.Error(err)
				}
				if _, err := os.ReadFile(secret); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestReadFileNeverWaits(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	ok(t, syscall.Mkfifo(pipe, 0o600))
	done := make(chan error, 1)
	go func() {
		_, _, err := ReadFile(pipe, 10)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, ErrNotRegular) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("ReadFile waits for a writer of the pipe")
	}
	if _, _, err := ReadFile(filepath.Dir(pipe), 10); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	path := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(path, make([]byte, 11), 0o600))
	if _, _, err := ReadFile(path, 10); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "10 bytes") {
		t.Errorf("a long file: %v", err)
	}
	if data, _, err := ReadFile(path, 11); err != nil || len(data) != 11 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if _, _, err := ReadFile(path+"x", 11); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Root runs a program as another user if that user owns the program, or the folder that it works
// in.
func TestRunAs(t *testing.T) {
	root(t)
	dir := theirs(t)
	script := filepath.Join(dir, "script")
	ok(t, os.WriteFile(script, []byte("#!/bin/sh\nid -u; id -g; id -G\n"), 0o755))
	other := theirs(t)
	ok(t, os.Chown(other, somebody+1, somebody+1))
	for _, paths := range [][]string{{script}, {"/bin/sh", dir}, {script, dir}} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", script)
		ok(t, RunAs(cmd, paths...))
		if out, err := cmd.Output(); err != nil || strings.Join(strings.Fields(string(out)), " ") != "54321 54321 54321" {
			t.Errorf("%v: %q %v", paths, out, err)
		}
	}
	cmd := exec.CommandContext(t.Context(), script)
	if err := RunAs(cmd, script, other); err == nil {
		t.Error("RunAs accepts the program of one user for the folder of another")
	}
	cmd = exec.CommandContext(t.Context(), "/bin/sh", "-c", "id -u")
	ok(t, RunAs(cmd, "/bin/sh", t.TempDir()))
	if out, err := cmd.Output(); err != nil || string(out) != "0\n" {
		t.Errorf("%q %v", out, err)
	}
}
