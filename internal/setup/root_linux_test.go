package setup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ids of users without an account.
const (
	hermesUser = 54501
	serverUser = 54502
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can work in the folders of other users")
	}
	before := ownNotes
	ownNotes = filepath.Join(t.TempDir(), "etc")
	t.Cleanup(func() { ownNotes = before })
}

// give changes the owner of everything below a folder, and lets other users enter the folders above it.
func give(t *testing.T, dir string, uid int) {
	t.Helper()
	for up := filepath.Dir(dir); strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o755))
	}
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, uid))
	}))
}

// owned fails the test if anything below a folder does not belong to a user.
func owned(t *testing.T, dir string, uid uint32) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != uid {
				t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
			}
		}
		return err
	}))
}

// Everything that root writes to the home of a user belongs to that user: files, folders, backups, and
// what an undo restores.
func TestRootWritesAsTheOwner(t *testing.T) {
	asRoot(t)
	for name, keeper := range map[string]int{"its own data folder": 0, "the user's data folder": hermesUser, "the server's data folder": serverUser} {
		t.Run(name, func(t *testing.T) {
			home, data := install(t, []byte("a: 1\n"), []byte("A=1\n"))
			must(t, os.Mkdir(data, 0o700))
			give(t, home, hermesUser)
			give(t, data, keeper)
			before := files(t, home)
			write(t, plan(t, options(home)), data)
			writeChannel(t, home, data, "tel-1")
			owned(t, home, hermesUser)
			owned(t, data, uint32(keeper))
			_, err := os.Stat(filepath.Join(data, stateFile))
			if inData := err == nil; inData != (keeper == hermesUser) {
				t.Errorf("the notes are in the data folder: %v", inData)
			}
			if _, err := os.Stat(filepath.Join(ownNotes, stateFile)); (err == nil) == (keeper == hermesUser) {
				t.Errorf("the notes are in the folder of root: %v", err)
			}
			if list, err := Undo(data, home); err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			sameFiles(t, files(t, home), before)
			owned(t, home, hermesUser)
			if left := files(t, data); len(left) > 1 {
				t.Errorf("the data folder has %v", left)
			}
			if _, err := os.Stat(ownNotes); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder of root is left: %v", err)
			}
		})
	}
}

// Links that the owner of a home creates lead root to no other files.
func TestRootFollowsNoLinks(t *testing.T) {
	asRoot(t)
	const mine = "GATEWAY_RELAY_ID=of-root\nGATEWAY_RELAY_SECRET=s3cret-of-root\n"
	for name, plant := range map[string]func(t *testing.T, home, secrets string) string{
		".env": func(t *testing.T, home, secrets string) string {
			must(t, os.Remove(filepath.Join(home, envFile)))
			must(t, os.Symlink(filepath.Join(secrets, envFile), filepath.Join(home, envFile)))
			return home
		},
		"config.yaml": func(t *testing.T, home, secrets string) string {
			must(t, os.Remove(filepath.Join(home, configFile)))
			must(t, os.Symlink(filepath.Join(secrets, configFile), filepath.Join(home, configFile)))
			return home
		},
		"a file that is not there yet": func(t *testing.T, home, secrets string) string {
			must(t, os.Remove(filepath.Join(home, configFile)))
			must(t, os.Symlink(filepath.Join(secrets, "new.yaml"), filepath.Join(home, configFile)))
			return home
		},
		"the plug-in": func(t *testing.T, home, secrets string) string {
			must(t, os.Symlink(secrets, filepath.Join(home, "plugins")))
			return home
		},
		"the home": func(t *testing.T, home, secrets string) string {
			inner := filepath.Join(home, "profiles")
			must(t, os.Symlink(secrets, inner))
			return inner
		},
		"the record of a process": func(t *testing.T, home, secrets string) string {
			must(t, os.Symlink(filepath.Join(secrets, "pid"), filepath.Join(home, pidFile)))
			return home
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, data := install(t, []byte("a: 1\n"), []byte("A=1\n"))
			secrets := t.TempDir()
			put(t, filepath.Join(secrets, envFile), []byte(mine), 0o640)
			put(t, filepath.Join(secrets, configFile), []byte("of: root\n"), 0o600)
			put(t, filepath.Join(secrets, "pid"), []byte("1"), 0o600)
			target := plant(t, home, secrets)
			give(t, home, hermesUser)
			before := files(t, secrets)
			p, err := NewPlan(options(target))
			if err == nil {
				for _, s := range p.Show() {
					if strings.Contains(strings.Join(s.Lines, "\n"), "of-root") {
						t.Errorf("it shows %q", s.Lines)
					}
				}
				p.Replace = true
				_, err = p.Write(data, time.Now())
			}
			if name != "the record of a process" && name != "a file that is not there yet" && (!errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "54501")) {
				t.Errorf("it says %v", err)
			}
			if p, ok := Running(Home{Path: target}); ok {
				t.Errorf("it found %+v", p)
			}
			sameFiles(t, files(t, secrets), before)
			if _, err := Undo(data, target); err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Error(err)
			}
			sameFiles(t, files(t, secrets), before)
		})
	}
}

// A user who can change the record of earlier runs, or the backups, does not decide what root removes
// and restores.
func TestForgedNotes(t *testing.T) {
	asRoot(t)
	victims := t.TempDir()
	victim := filepath.Join(victims, "important")
	put(t, victim, []byte("of root\n"), 0o644)
	evil := filepath.Join(t.TempDir(), "data", "evil")
	must(t, os.Mkdir(filepath.Dir(evil), 0o700))
	put(t, evil, []byte("by the server's account\n"), 0o600)
	data := filepath.Dir(evil)
	home, _ := install(t, []byte("a: 1\n"), nil)
	give(t, home, hermesUser)
	ours := read(t, filepath.Join(home, configFile))
	for name, r := range map[string]record{
		"remove":  {Path: victim, After: sum([]byte("of root\n"))},
		"restore": {Path: victim, Existed: true, Backup: evil, Mode: 0o644, Before: sum([]byte("by the server's account\n")), After: sum([]byte("of root\n"))},
		"edit": {Path: filepath.Join(home, configFile), Existed: true, Mode: 0o644, Before: "x", After: "y",
			Changes: []Change{{Key: "a", Old: "evil", New: "1", From: -1, Line: 1}}},
		"another home": {Path: filepath.Join(home, configFile), After: sum(ours)},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal([]step{{Home: home, Files: []record{r}, Made: []string{victims}}})
			must(t, err)
			put(t, filepath.Join(data, stateFile), text, 0o600)
			give(t, data, serverUser)
			_, _ = Undo(data, home) // whatever it says
			if got := string(read(t, victim)); got != "of root\n" {
				t.Errorf("the file of root is %q", got)
			}
			if got := string(read(t, filepath.Join(home, configFile))); got != string(ours) {
				t.Errorf("the file of the user is %q", got)
			}
		})
	}
	put(t, filepath.Join(mkdir(t, ownNotes), stateFile), []byte("[]"), 0o600)
	give(t, ownNotes, serverUser)
	must(t, os.Remove(filepath.Join(data, stateFile)))
	if _, err := Undo(data, home); err == nil || !strings.Contains(err.Error(), ownNotes) {
		t.Errorf("a folder of root that is somebody else's: %v", err)
	}
}

// Root runs another user's program with that user's rights to get its version.
func TestVersionOfAnotherUsersHermes(t *testing.T) {
	asRoot(t)
	home, _ := install(t, nil, nil)
	t.Setenv("PATH", "/usr/bin:/bin")
	t.Setenv("HOME", t.TempDir())
	if v, how := FindVersion(t.Context(), home); v.known() {
		t.Skipf("this machine has a Hermes of its own: %v %s", v, how)
	}
	ran := filepath.Join(home, "ran-as")
	program(t, filepath.Join(home, "hermes-agent", "venv", "bin", "hermes"), "#!/bin/sh\nid -u > '"+ran+"'\necho Hermes Agent v0.22.2\n")
	give(t, home, hermesUser)
	if v, how := FindVersion(t.Context(), home); v != (Version{0, 22}) {
		t.Errorf("%v %s", v, how)
	}
	if got := string(read(t, ran)); got != "54501\n" {
		t.Errorf("it ran as %q", got)
	}
}
