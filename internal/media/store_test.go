package media

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

func TestPutAndRead(t *testing.T) {
	s := newStore(t)
	f := mustPut(t, s, []byte("hello"))
	if f.Hash != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" || f.Size != 5 {
		t.Fatalf("%+v", f)
	}
	wantContent(t, s, f, []byte("hello"))
	if info, err := os.Stat(s.Path(f.Hash)); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got, err := s.Stat(f.Hash); got != f || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	again, err := s.PutReader(iotest.OneByteReader(strings.NewReader("hello")), 5)
	if again != f || err != nil {
		t.Errorf("%v, %v", again, err)
	}
	if _, err := s.PutReader(strings.NewReader("hello!"), 5); code(err) != "too_big" {
		t.Errorf("%v, want too_big", err)
	}
	if g, err := s.PutReader(strings.NewReader("hello!"), 0); g.Size != 6 || err != nil {
		t.Errorf("%v, %v", g, err)
	}
	broken := errors.New("broken")
	if _, err := s.PutReader(iotest.ErrReader(broken), 5); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
	if left := temps(t, s); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	for _, c := range []struct {
		off, n int64
		want   string
		bad    bool
	}{
		{0, 5, "hello", false}, {0, 3 << 40, "hello", false}, {1, 2, "el", false}, {4, 2, "o", false},
		{5, 1, "", false}, {0, 0, "", false}, {6, 1, "", true}, {-1, 1, "", true}, {0, -1, "", true},
	} {
		got, err := s.ReadPart(f.Hash, c.off, c.n)
		if string(got) != c.want || (err != nil) != c.bad {
			t.Errorf("%d at %d: %q, %v", c.n, c.off, got, err)
		}
	}
}

func TestOnlyHashesAreNames(t *testing.T) {
	s := newStore(t)
	if err := os.WriteFile(filepath.Join(s.dir, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"", "secret", "../secret", incomingDir, strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("a", 65),
		strings.Repeat("../", 21) + "a", strings.Repeat("a", 63) + "/", strings.Repeat("a", 63) + "\x00"} {
		_, openErr := s.Open(h)
		_, readErr := s.ReadPart(h, 0, 1)
		_, copyErr := s.LocalCopy(h, "a")
		if !errors.Is(openErr, ErrHash) || !errors.Is(readErr, ErrHash) || !errors.Is(copyErr, ErrHash) || !errors.Is(s.Touch(h), ErrHash) || s.Path(h) != "" || s.Has(h) {
			t.Errorf("%q was taken as a hash", h)
		}
	}
	h := strings.Repeat("a", 64)
	_, openErr := s.Open(h)
	_, copyErr := s.LocalCopy(h, "a")
	if !errors.Is(openErr, fs.ErrNotExist) || !errors.Is(copyErr, fs.ErrNotExist) || !errors.Is(s.Touch(h), fs.ErrNotExist) || s.Has(h) {
		t.Errorf("a missing file: %v, %v", openErr, copyErr)
	}
	if !filepath.IsAbs(s.Path(h)) {
		t.Error("a relative path")
	}
}

func TestOpenStoreCleansUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[*]b", "media")
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	f := mustPut(t, s, []byte("stays"))
	a := NewAssembler(Limits{SpoolAbove: 1}, s)
	if _, err := a.Add(part("a", pattern(4096), 0, 2), t0); err != nil {
		t.Fatal(err)
	}
	// A file of somebody else is not ours to remove, wherever dir points to.
	foreign := filepath.Join(s.incoming(), "foreign.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := len(temps(t, s)); n != 2 {
		t.Fatalf("%d files, want a spooled one and a foreign one", n)
	}
	if s, err = OpenStore(dir); err != nil {
		t.Fatal(err)
	}
	if left := temps(t, s); len(left) != 1 || left[0] != "foreign.txt" {
		t.Errorf("left: %v", left)
	}
	wantContent(t, s, f, []byte("stays"))
}

func TestDiskErrorsAreWrapped(t *testing.T) {
	s := newStore(t)
	f := mustPut(t, s, []byte("here"))
	s.create = fullDisk(t)
	_, putErr := s.Put([]byte("new"))
	_, readerErr := s.PutReader(strings.NewReader("new"), 100)
	_, copyErr := s.LocalCopy(f.Hash, "a")
	for _, err := range []error{putErr, readerErr, copyErr} {
		if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "media: ") {
			t.Errorf("%v, want a wrapped ENOSPC", err)
		}
	}
	// What is stored already needs no room.
	if g, err := s.Put([]byte("here")); g != f || err != nil {
		t.Errorf("%v, %v", g, err)
	}
	s.create = func(string, string) (*os.File, error) {
		return nil, &os.PathError{Op: "open", Path: "x", Err: syscall.EROFS}
	}
	if _, err := s.Put([]byte("new")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v, want a wrapped EROFS", err)
	}
	// The rename fails: the temporary file must not stay.
	s.create = os.CreateTemp
	sum := "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437" // of "new"
	if err := os.MkdirAll(filepath.Join(s.dir, sum, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put([]byte("new")); err == nil || len(temps(t, s)) != 0 {
		t.Errorf("%v, left: %v", err, temps(t, s))
	}
	if _, err := OpenStore(filepath.Join(s.Path(f.Hash), "below")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("%v, want a wrapped ENOTDIR", err)
	}
}

func TestDamagedFileIsReplaced(t *testing.T) {
	s := newStore(t)
	f := mustPut(t, s, []byte("whole"))
	if err := os.Truncate(s.Path(f.Hash), 2); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, []byte("whole"))
	wantContent(t, s, f, []byte("whole"))
}

func age(t testing.TB, s *Store, hash string, when time.Time) {
	t.Helper()
	if err := os.Chtimes(s.Path(hash), when, when); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	s := newStore(t)
	now := time.Now()
	old, young, kept, touched, again := mustPut(t, s, []byte("old")), mustPut(t, s, []byte("young")), mustPut(t, s, []byte("kept")), mustPut(t, s, []byte("touched")), mustPut(t, s, []byte("again"))
	local, err := s.LocalCopy(old.Hash, "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(s.local(), strings.Repeat("b", 64))
	if err := os.Mkdir(orphan, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []File{old, kept, touched, again} {
		age(t, s, f.Hash, now.Add(-2*time.Hour))
	}
	if err := s.Touch(touched.Hash); err != nil {
		t.Fatal(err)
	}
	keep := func(h string) bool {
		if h == again.Hash {
			mustPut(t, s, []byte("again")) // somebody puts it while keep decides
		}
		return h == kept.Hash
	}
	removed, freed, err := s.Sweep(t.Context(), keep, time.Hour, now)
	if removed != 1 || freed != 6 || err != nil {
		t.Errorf("%d removed, %d freed, %v", removed, freed, err)
	}
	for _, f := range []File{young, kept, touched, again} {
		if !s.Has(f.Hash) {
			t.Errorf("%v is gone", f)
		}
	}
	for _, p := range []string{s.Path(old.Hash), local, orphan} {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want gone", p, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if removed, _, err := s.Sweep(ctx, keep, -time.Hour, now); removed != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d removed, %v", removed, err)
	}
	if removed, _, err := s.Sweep(t.Context(), func(string) bool { return false }, -time.Hour, now); removed != 4 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
}

func TestLocalCopy(t *testing.T) {
	s := newStore(t)
	f := mustPut(t, s, png)
	for name, want := range map[string]string{"a.jpg": "a.jpg", "": "file.png", "../x": "x.png", "dot.": "dot..png", strings.Repeat("x", 255): strings.Repeat("x", 251) + ".png"} {
		p, err := s.LocalCopy(f.Hash, name)
		if err != nil || filepath.Base(p) != want || !filepath.IsAbs(p) || filepath.Base(filepath.Dir(p)) != f.Hash {
			t.Errorf("%q: %s, %v, want %s", name, p, err, want)
		}
		if got, err := os.ReadFile(p); err != nil || !bytes.Equal(got, png) {
			t.Errorf("%q: %d bytes, %v", name, len(got), err)
		}
		if info, err := os.Stat(p); err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	// A tool that edits its copy changes neither the stored file nor the next copy.
	p, _ := s.LocalCopy(f.Hash, "a.png")
	if err := os.WriteFile(p, []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantContent(t, s, f, png)
	p, _ = s.LocalCopy(f.Hash, "a.png")
	if got, _ := os.ReadFile(p); !bytes.Equal(got, png) {
		t.Error("the second copy is the edited one")
	}
	if left := temps(t, s); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// An agent with another account reads its copies by the group, where the owner has opened the
// folder above to it, and nothing else of the store.
func TestLocalCopyForAGroup(t *testing.T) {
	for mode, want := range map[os.FileMode]map[string]os.FileMode{
		0o700: {"": 0o700, localDir: 0o700, "copy": 0o600}, 0o710: {"": 0o710, localDir: 0o710, "copy": 0o640}, 0o750: {"": 0o700, localDir: 0o700, "copy": 0o600},
		0o755: {"": 0o700, localDir: 0o700, "copy": 0o600},
	} {
		data := t.TempDir()
		if err := os.Chmod(data, mode); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStore(filepath.Join(data, "files"))
		if err != nil {
			t.Fatal(err)
		}
		f := mustPut(t, s, png)
		p, err := s.LocalCopy(f.Hash, "a.png")
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Join(localDir, f.Hash)] = want[localDir]
		want[incomingDir], want[f.Hash] = 0o700, 0o600
		for name, mode := range want {
			path := filepath.Join(data, "files", name)
			if name == "copy" {
				path = p
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s is %v, %v; want %v", path, info.Mode(), err, mode)
			}
		}
	}
}

func TestLocalCopyAndSweep(t *testing.T) {
	s := newStore(t)
	f := mustPut(t, s, png)
	age(t, s, f.Hash, time.Unix(0, 0))
	if _, err := s.LocalCopy(f.Hash, "a.png"); err != nil {
		t.Fatal(err)
	}
	// The agent works on it now, however long ago it came.
	if removed, _, err := s.Sweep(t.Context(), func(string) bool { return false }, time.Hour, time.Now()); removed != 0 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
	// Swept between opening the original and placing the copy.
	s.create = func(dir, pattern string) (*os.File, error) {
		if removed, _, err := s.Sweep(t.Context(), func(string) bool { return false }, -time.Hour, time.Now()); removed != 1 || err != nil {
			t.Errorf("%d removed, %v", removed, err)
		}
		return os.CreateTemp(dir, pattern)
	}
	if _, err := s.LocalCopy(f.Hash, "a.png"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want not there", err)
	}
	if _, err := os.Stat(filepath.Join(s.local(), f.Hash)); !errors.Is(err, fs.ErrNotExist) || len(temps(t, s)) != 0 {
		t.Errorf("a copy without original: %v, %v", err, temps(t, s))
	}
}

// TestPutWinsOverSweep puts, opens and copies the same few files while they are
// made old and swept all the time: what Put returned must be there and whole
// until it is old again.
func TestPutWinsOverSweep(t *testing.T) {
	s := newStore(t)
	const rounds, files = 150, 3
	stop := make(chan struct{})
	var sweeps, workers sync.WaitGroup
	for range 2 {
		sweeps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, err := s.Sweep(t.Context(), func(string) bool { return false }, time.Hour, time.Now()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range files {
		data := pattern(1000 + n)
		workers.Go(func() {
			for i := range rounds {
				put := func() (File, error) { return s.Put(data) }
				if i%2 == 0 {
					put = func() (File, error) { return s.PutReader(bytes.NewReader(data), 0) }
				}
				f, err := put()
				if err != nil {
					t.Error(err)
					return
				}
				p, err := s.LocalCopy(f.Hash, "a.bin")
				if err != nil {
					t.Error(err)
					return
				}
				r, err := s.Open(f.Hash)
				if err != nil {
					t.Error(err)
					return
				}
				age(t, s, f.Hash, time.Unix(0, 0))
				got, err := io.ReadAll(r)
				r.Close()
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				_ = p
			}
		})
		// The same content from a second writer, which never makes it old.
		workers.Go(func() {
			for range rounds {
				if _, err := s.Put(data); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	sweeps.Wait()
	if left := temps(t, s); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
