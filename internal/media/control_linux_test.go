package media

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent gets no path at which another user could put another file.
func TestLocalCopyOnlyWhereNobodyElseCanChangeIt(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "open", "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(filepath.Join(link, "files"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := store.Put([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		mode os.FileMode
		ok   bool
	}{
		{"open", 0o700, true}, {"open", 0o755, true}, {"open", 0o777, false}, {"open", 0o777 | os.ModeSticky, true}, {"open/data", 0o777, false},
		{"open/data/files", 0o777, false}, {"open/data/files/local", 0o777, false}, {"open", 0o775, true}, // the group is our own
	} {
		dir := filepath.Join(root, c.dir)
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		path, err := store.LocalCopy(f.Hash, "a name.txt")
		if (err == nil) != c.ok {
			t.Errorf("%s with mode %v: %q %v", c.dir, c.mode, path, err)
		}
		if err == nil && path != filepath.Join(data, "files", "local", f.Hash, "a name.txt") || err != nil && !strings.Contains(err.Error(), c.dir) {
			t.Errorf("%s with mode %v: %q %v", c.dir, c.mode, path, err)
		}
		if n := len(temps(t, store)); n != 0 {
			t.Errorf("%d temporary files are left", n)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
