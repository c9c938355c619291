package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds wants a folder to have these files and nothing else.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		got, err := os.ReadFile(filepath.Join(dir, e.Name()))
		ok(t, err)
		if text, known := want[e.Name()]; !known || text != string(got) {
			t.Errorf("there is %s with %q", e.Name(), got)
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%d files, want %d", len(entries), len(want))
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	ok(t, Replace(path, []byte("one"), Options{}))
	ok(t, Replace(path, []byte("two"), Options{Mode: 0o640}))
	ok(t, Replace(filepath.Join(dir, "g"), nil, Options{}))
	holds(t, dir, map[string]string{"f": "two", "g": ""})
	if runtime.GOOS != "windows" {
		for name, want := range map[string]fs.FileMode{"f": 0o640, "g": 0o600} {
			if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode().Perm() != want {
				t.Errorf("%s has %v, %v", name, fi.Mode(), err)
			}
		}
	}

	// What refuses leaves the old file and no draft.
	no := errors.New("no")
	for name, o := range map[string]Options{
		"prepare": {Prepare: func(d *Draft) error {
			if d.Path != path {
				t.Errorf("prepared for %s", d.Path)
			}
			return no
		}},
		"closed":    {Prepare: func(d *Draft) error { return d.Close() }},
		"check":     {Check: func(string) error { return no }},
		"gone away": {Check: func(string) error { return os.RemoveAll(filepath.Join(dir, "none")) }},
	} {
		err := Replace(path, []byte("three"), o)
		if name == "gone away" {
			ok(t, err)
			ok(t, Replace(path, []byte("two"), Options{}))
		} else if err == nil {
			t.Errorf("%s: no error", name)
		}
		holds(t, dir, map[string]string{"f": "two", "g": ""})
	}
	if err := Replace(filepath.Join(dir, "none", "f"), nil, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	ok(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	if err := Replace(filepath.Join(dir, "folder"), []byte("x"), Options{}); err == nil {
		t.Error("a folder was replaced")
	}
}

func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	real, dir := t.TempDir(), t.TempDir()
	target, link := filepath.Join(real, "target"), filepath.Join(dir, "link")
	ok(t, os.WriteFile(target, []byte("old"), 0o600))
	ok(t, os.Symlink(target, link))
	ok(t, Replace(link, []byte("new"), Options{FollowLink: true}))
	holds(t, real, map[string]string{"target": "new"})
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", fi, err)
	}
	ok(t, Replace(link, []byte("own"), Options{}))
	holds(t, real, map[string]string{"target": "new"})
	if fi, err := os.Lstat(link); err != nil || !fi.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", fi, err)
	}
}

// Who reads while others write sees one of the whole texts.
func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	texts := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000), ""}
	ok(t, Replace(path, []byte(texts[0]), Options{}))
	var writers sync.WaitGroup
	for _, text := range texts {
		writers.Go(func() {
			for range 20 {
				if err := Replace(path, []byte(text), Options{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		got, err := os.ReadFile(path)
		ok(t, err)
		if s := string(got); s != texts[0] && s != texts[1] && s != texts[2] {
			t.Fatalf("a reader saw %d bytes", len(s))
		}
	}
}

// TestNobodyElseReplacesFiles: what writes or renames files in another way is listed here with its reason.
func TestNobodyElseReplacesFiles(t *testing.T) {
	reasons := map[string]string{
		"internal/atomicfile/atomicfile.go": "is this package",
		"internal/media/store.go":           "moves what was uploaded, which is written as it comes",
		"internal/media/localcopy.go":       "places a copy that can be made again",
		"internal/connect/storage.go":       "moves an unreadable profile aside",
		"device/filestore.go":               "is taken along by other programs, which may choose speed over a flush",
	}
	for _, root := range []string{"internal", "cmd", "device", "gateway", "frame"} {
		ok(t, filepath.WalkDir(filepath.Join("..", "..", root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "test/") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(filepath.Clean(path), filepath.Join("..", "..")+string(filepath.Separator)))
			for _, call := range []string{"os.Rename(", "os.WriteFile("} {
				if strings.Contains(string(text), call) && reasons[name] == "" {
					t.Errorf("%s has %s...): small files are written by atomicfile.Replace", name, call)
				}
			}
			return nil
		}))
	}
}
