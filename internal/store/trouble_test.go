package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func walSize(t *testing.T, dir string) int64 {
	t.Helper()
	return value[fs.FileInfo](t)(os.Stat(filepath.Join(dir, File+"-wal"))).Size()
}

func truncateWAL(t *testing.T, dir string, size int64) {
	t.Helper()
	ok(t, os.Truncate(filepath.Join(dir, File+"-wal"), size))
}

// pages limits the size of the database, as a full disk does: SQLite answers both with SQLITE_FULL.
func pages(t *testing.T, s *Store, add int) {
	t.Helper()
	var now int
	ok(t, s.conn.QueryRowContext(ctx, "PRAGMA page_count").Scan(&now))
	_, err := s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", now+add))
	ok(t, err)
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dev := device(t, s, "d")
	body := make([]byte, 3000)
	pages(t, s, 20)
	stored, refused := int64(0), 0
	for i := int64(1); refused < 5; i++ {
		if i > 100 {
			t.Fatal("the limit is never reached")
		}
		err := s.Do(func(tx *Tx) error { return tx.Append(dev, i, KindMessage, body, "", t0) })
		switch {
		case err != nil:
			refused++
			if !strings.Contains(err.Error(), "full") {
				t.Errorf("error %q does not say that something is full", err)
			}
		case refused > 0:
			t.Fatalf("entry %d fits after another did not", i)
		default:
			stored++
		}
	}
	if n, _, _, err := s.OutboxBounds(ctx, dev); err != nil || int64(n) != stored || stored == 0 {
		t.Errorf("%d entries (%v), %d were acknowledged", n, err, stored)
	}
	// The owner makes room, and all goes on without a restart.
	pages(t, s, 1000)
	do(t, s, func(tx *Tx) error { return tx.Append(dev, 1000, KindMessage, body, "", t0) })
	ok(t, s.Close())
	if n, newest, _, err := open(t, dir).OutboxBounds(ctx, dev); err != nil || int64(n) != stored+1 || newest != 1000 {
		t.Errorf("after reopening %d entries up to %d (%v), want %d", n, newest, err, stored+1)
	}
}

// A group in which some do not fit: each job is told about itself, and what was acknowledged is
// there.
func TestFullDiskInAGroup(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dev := device(t, s, "d")
	pages(t, s, 12)
	release := hold(s)
	const jobs = 30
	outcome := make(chan error, jobs)
	for i := range int64(jobs) {
		s.Go(func(tx *Tx) error { return tx.Append(dev, i+1, KindMessage, make([]byte, 3000), "", t0) }, func(err error) { outcome <- err })
	}
	release()
	stored := 0
	for range jobs {
		if <-outcome == nil {
			stored++
		}
	}
	if stored == 0 || stored == jobs {
		t.Fatalf("%d of %d fit: the test wants some", stored, jobs)
	}
	ok(t, s.Close())
	if n, _, _, err := open(t, dir).OutboxBounds(ctx, dev); err != nil || n != stored {
		t.Errorf("%d entries (%v), %d were acknowledged", n, err, stored)
	}
}

// The same with the system's own limit: every write to a file beyond it fails, also those of the
// journal.
func init() {
	children["file-limit"] = func(dir string) error {
		signal.Ignore(syscall.SIGXFSZ) // then writes fail with EFBIG
		s, err := Open(ctx, dir)
		if err != nil {
			return err
		}
		d := &Device{ID: "d"}
		if err := s.Do(func(tx *Tx) error { return tx.AddDevice(d, t0) }); err != nil {
			return err
		}
		limit := syscall.Rlimit{Cur: 600 << 10, Max: 600 << 10} // more than an empty database and its journal
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		stored, refused := 0, 0
		for i := int64(1); i <= 400; i++ {
			if err := s.Do(func(tx *Tx) error { return tx.Append(d.N, i, KindMessage, make([]byte, 1000), "", t0) }); err != nil {
				refused++
			} else {
				stored++
			}
		}
		_ = s.Close() // the last checkpoint may not fit: what is in the journal counts
		fmt.Println("stored", stored, "refused", refused)
		return nil
	}
}

func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	out, failed := child(t, "file-limit", dir)
	var stored, refused int
	if _, err := fmt.Sscanf(out, "stored %d refused %d", &stored, &refused); err != nil || failed {
		t.Fatalf("the child said %q", out)
	}
	if stored == 0 || refused == 0 {
		t.Fatalf("%d stored, %d refused: the test wants both", stored, refused)
	}
	s := open(t, dir)
	dev := value[*Device](t)(s.Device(ctx, "d"))
	if n, _, _, err := s.OutboxBounds(ctx, dev.N); err != nil || n < stored {
		t.Errorf("%d entries (%v), %d were acknowledged", n, err, stored)
	}
}

// nobody is a user without rights. Root may write everywhere, so the child gives that up first.
func init() {
	children["read-only"] = func(dir string) error {
		if os.Geteuid() == 0 {
			if err := syscall.Setuid(65534); err != nil {
				return err
			}
		}
		s, err := Open(ctx, dir)
		if err != nil {
			return err
		}
		return errors.Join(errors.New("it was opened"), s.Close())
	}
}

func TestReadOnlyFolder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(dir string)
	}{
		{"empty", func(string) {}},
		{"with a database", func(dir string) {
			ok(t, open(t, dir).Close())
			ok(t, os.Chmod(filepath.Join(dir, File), 0o444))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "data")
			ok(t, os.Mkdir(dir, 0o755))
			tc.prepare(dir)
			for p := base; p != os.TempDir() && p != "/"; p = filepath.Dir(p) { // the child must get there
				ok(t, os.Chmod(p, 0o755))
			}
			ok(t, os.Chmod(dir, 0o555))
			t.Cleanup(func() { ok(t, os.Chmod(dir, 0o700)) })
			out, failed := child(t, "read-only", dir)
			if !failed || strings.Contains(out, "it was opened") {
				t.Fatalf("a read-only folder was opened: %q", out)
			}
			if strings.Contains(out, "panic") || !strings.Contains(out, filepath.Join(dir, File)) {
				t.Errorf("the error does not name the file: %q", out)
			}
			if !strings.Contains(out, "permission denied") && !strings.Contains(out, "readonly") && !strings.Contains(out, "unable to open") && !strings.Contains(out, "not permitted") {
				t.Errorf("the error does not say what is wrong: %q", out)
			}
			t.Log(out)
		})
	}
}

// The folder cannot be made at all.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, nil, 0o600))
	if s, err := Open(ctx, filepath.Join(file, "data")); err == nil {
		t.Fatal("opened below a file", s.Close())
	} else if !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("error %v", err)
	}
}

// Nobody else may read what people said, at no moment, and also where the owner made the folder
// with another mode.
func TestModes(t *testing.T) {
	mask := syscall.Umask(0o022)
	defer syscall.Umask(mask)
	base := t.TempDir()
	made := filepath.Join(base, "made", "here")
	s := open(t, made)
	if fi := value[fs.FileInfo](t)(os.Stat(made)); fi.Mode().Perm() != 0o700 {
		t.Errorf("the data folder has mode %v", fi.Mode())
	}
	ok(t, s.Close())

	wide := filepath.Join(base, "wide")
	ok(t, os.Mkdir(wide, 0o755))
	s = open(t, wide)
	device(t, s, "d")
	files := value[[]os.DirEntry](t)(os.ReadDir(wide))
	if len(files) < 2 {
		t.Fatalf("only %d files: where is the journal?", len(files))
	}
	for _, f := range files {
		if fi := value[fs.FileInfo](t)(f.Info()); fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", f.Name(), fi.Mode())
		}
	}
}

// A path with characters that mean something in a URI is a path.
func TestOddPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?mode=memory#c%41ü")
	s := open(t, dir)
	device(t, s, "d")
	ok(t, s.Close())
	if _, err := os.Stat(filepath.Join(dir, File)); err != nil {
		t.Errorf("the database is elsewhere: %v", err)
	}
	if d := value[*Device](t)(open(t, dir).Device(ctx, "d")); d == nil {
		t.Error("the device is gone")
	}
}
