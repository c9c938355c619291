package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/leak"
)

// childEnv makes the test binary do one thing in a process of its own: what cannot be undone in
// this one, such as giving up root.
const childEnv = "HERMES_STORE_TEST_CHILD"

var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) {
	if name, dir, ok := strings.Cut(os.Getenv(childEnv), " "); ok {
		if err := children[name](dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leak.Main(m)
}

// child runs one of children and returns what it said and whether it failed.
func child(t *testing.T, name, dir string) (output string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name+" "+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err != nil
}

var (
	ctx = context.Background()
	t0  = time.UnixMilli(1_790_000_000_000)
)

// failer is what the helpers need of a test, also of rapid's.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-s.closing:
		default:
			ok(t, s.Close())
		}
	})
	return s
}

func ok(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// value returns a function that unpacks a result and fails on its error.
func value[T any](t failer) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func do(t failer, s *Store, f func(*Tx) error) {
	t.Helper()
	ok(t, s.Do(f))
}

// device adds a device and returns its number.
func device(t failer, s *Store, id string) int64 {
	t.Helper()
	d := &Device{ID: id, UserID: id, Label: "main"}
	do(t, s, func(tx *Tx) error { return tx.AddDevice(d, t0) })
	return d.N
}

// appendRow stores an outbox entry whose body is its seq.
func appendRow(tx *Tx, dev, seq int64, at time.Time) error {
	return tx.Append(dev, seq, KindMessage, fmt.Append(nil, seq), "", at)
}

func seqs(t failer, s *Store, dev int64) []int64 {
	t.Helper()
	list := []int64{}
	for _, o := range value[[]Out](t)(s.Outbox(ctx, dev, 0, 1<<30)) {
		if string(o.Body) != fmt.Sprint(o.Seq) {
			t.Fatalf("entry %d holds %q", o.Seq, o.Body)
		}
		list = append(list, o.Seq)
	}
	return list
}

// within fails the test when f has not returned in time: a deadlock is to be a message, not a dump
// after ten minutes.
func within(t failer, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s did not end within %v", what, d)
	}
}

// copyFiles copies the database with its journals as they are at this moment, like a crash of the
// machine leaves them.
func copyFiles(t failer, from, to string) {
	t.Helper()
	// Pages reach the file only after they are in the journal, so the file is copied first. A
	// journal that was begun anew between the two reads has lost what the copy of the file lacks,
	// which no crash does: then it is copied again.
	for {
		begun := journalHead(t, from)
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(filepath.Join(from, File+suffix))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			ok(t, err)
			ok(t, os.WriteFile(filepath.Join(to, File+suffix), data, 0o600))
		}
		if bytes.Equal(begun, journalHead(t, to)) {
			return
		}
	}
}

// journalHead is the beginning of a journal, which is another one each time that it is begun anew.
func journalHead(t failer, dir string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, File+"-wal"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ok(t, err)
	return data[:min(32, len(data))]
}
