package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// A copy that is taken while writers run has everything acknowledged before, pairs of rows whole,
// and can be opened.
func TestBackupWhileWriting(t *testing.T) {
	s := open(t, t.TempDir())
	const writers = 4
	var devs [writers]int64
	var acked [writers]atomic.Int64
	for w := range devs {
		devs[w] = device(t, s, fmt.Sprint("d", w))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := int64(1); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Do(func(tx *Tx) error {
					if err := appendRow(tx, devs[w], 2*i-1, t0); err != nil {
						return err
					}
					return appendRow(tx, devs[w], 2*i, t0)
				}); err != nil {
					t.Error(err)
					return
				}
				acked[w].Store(i)
			}
		})
	}
	defer func() { close(stop); wg.Wait() }()
	for range 5 {
		for acked[0].Load() < 20 {
			do(t, s, func(*Tx) error { return nil }) // a turn of the writer
		}
		var before [writers]int64
		for w := range before {
			before[w] = acked[w].Load()
		}
		dir := t.TempDir()
		ok(t, s.Backup(ctx, filepath.Join(dir, File)))
		b := open(t, dir)
		for w := range writers {
			got := seqs(t, b, devs[w])
			if int64(len(got)) < 2*before[w] || len(got)%2 != 0 {
				t.Fatalf("the copy has %d rows of writer %d, %d pairs were acknowledged", len(got), w, before[w])
			}
		}
		device(t, b, "after")
		ok(t, b.Close())
	}
}

func TestBackupRefusesWhatIsThere(t *testing.T) {
	s := open(t, t.TempDir())
	device(t, s, "d")
	for name, prepare := range map[string]func(path string) error{
		"a file":              func(p string) error { return os.WriteFile(p, []byte("mine"), 0o644) },
		"an empty file":       func(p string) error { return os.WriteFile(p, nil, 0o644) },
		"a folder":            func(p string) error { return os.Mkdir(p, 0o700) },
		"a link to nowhere":   func(p string) error { return os.Symlink(p+"-elsewhere", p) },
		"the database itself": func(p string) error { return os.Link(filepath.Join(filepath.Dir(p), "x"), p) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup.db")
			if name == "the database itself" {
				ok(t, os.WriteFile(filepath.Join(filepath.Dir(path), "x"), []byte("mine"), 0o600))
			}
			ok(t, prepare(path))
			before := value[fs.FileInfo](t)(os.Lstat(path))
			err := s.Backup(ctx, path)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one that names the file", err)
			}
			after := value[fs.FileInfo](t)(os.Lstat(path))
			if after.Size() != before.Size() || after.Mode() != before.Mode() {
				t.Errorf("it was changed: %v %d, was %v %d", after.Mode(), after.Size(), before.Mode(), before.Size())
			}
			if _, err := os.Lstat(path + "-elsewhere"); err == nil {
				t.Error("a file was made where the link points")
			}
		})
	}
}

// A backup holds what people said, like the database: 0600, whatever the mask of the process is.
func TestBackupMode(t *testing.T) {
	mask := syscall.Umask(0)
	defer syscall.Umask(mask)
	s := open(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "backup.db")
	ok(t, s.Backup(ctx, path))
	if fi := value[fs.FileInfo](t)(os.Stat(path)); fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
}

func TestBackupThatFails(t *testing.T) {
	s := open(t, t.TempDir())
	device(t, s, "d")
	path := filepath.Join(t.TempDir(), "no", "such", "folder", "b.db")
	if err := s.Backup(ctx, path); err == nil {
		t.Error("a backup into no folder")
	}
	device(t, s, "e") // and the store goes on
	if d := value[*Device](t)(s.Device(ctx, "e")); d == nil {
		t.Error("the device is gone")
	}
}
