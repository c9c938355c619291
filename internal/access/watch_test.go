package access

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func wantChange(t *testing.T, c Change, approved, revoked []string) {
	t.Helper()
	if c.Err != nil || !slices.Equal(c.Approved, approved) || !slices.Equal(c.Revoked, revoked) {
		t.Fatalf("%+v, want %v and %v", c, approved, revoked)
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	approved := filepath.Join(dir, "mobile-approved.json")
	write(t, approved, `{"a": {}}`)
	synctest.Test(t, func(t *testing.T) {
		p := must[*Pairing](t)(OpenPairing(dir, "mobile"))
		write(t, approved, `{"a": {}, "b": {}}`) // before Watch begins
		ctx, cancel := context.WithCancel(t.Context())
		changes := make(chan Change, 10)
		done := make(chan struct{})
		go func() { p.Watch(ctx, func(c Change) { changes <- c }); close(done) }()
		next := func() Change {
			t.Helper()
			select {
			case c := <-changes:
				return c
			case <-time.After(500 * time.Millisecond):
				t.Fatal("nothing within half a second")
				return Change{}
			}
		}
		quiet := func() {
			t.Helper()
			select {
			case c := <-changes:
				t.Fatalf("%+v", c)
			case <-time.After(5 * time.Second):
			}
		}
		wantChange(t, next(), []string{"b"}, nil)
		quiet()

		write(t, approved+".tmp", `{"c": {}, "d": {}}`) // as Hermes does
		os.Rename(approved+".tmp", approved)
		wantChange(t, next(), []string{"c", "d"}, []string{"a", "b"})

		must[User](t)(p.ApproveUser("e", ""))
		wantChange(t, next(), []string{"e"}, nil)

		must[User](t)(p.ApproveUser("f", ""))
		wantChange(t, next(), []string{"f"}, nil)
		if err := p.Revoke("f"); err != nil {
			t.Fatal(err)
		}
		quiet() // whoever revoked carries it out

		write(t, approved, `{"c": {}`)
		if c := next(); c.Err == nil || c.Approved != nil || c.Revoked != nil {
			t.Fatalf("%+v", c)
		}
		if p.Approved("c") {
			t.Error("approved by a damaged file")
		}
		quiet()
		write(t, approved, `{"c": {}, "e": {}}`)
		wantChange(t, next(), nil, []string{"d"})

		os.Remove(approved)
		wantChange(t, next(), nil, []string{"c", "e"})
		quiet()
		cancel()
		<-done
	})
}

func TestWatchThinksTwiceAboutAMissingFile(t *testing.T) {
	p, _ := newPairing(t)
	write(t, p.approvedPath(), `{"a": {}}`)
	w := &must[*Pairing](t)(OpenPairing(p.dir, "mobile")).watcher
	nothing := func() {
		t.Helper()
		if c, ok := w.look(); ok {
			t.Fatalf("%+v", c)
		}
	}
	nothing()
	os.Remove(p.approvedPath())
	nothing() // somebody copies over it
	write(t, p.approvedPath(), `{"a": {}, "b": {}}`)
	c, _ := w.look()
	wantChange(t, c, []string{"b"}, nil)

	os.Rename(p.dir, p.dir+"-away") // a disk that is not there
	nothing()
	if c, ok := w.look(); !ok || c.Err == nil || c.Revoked != nil {
		t.Fatalf("%+v", c)
	}
	nothing()
	os.Rename(p.dir+"-away", p.dir)
	nothing()
	nothing()
	os.Remove(p.approvedPath())
	nothing()
	c, _ = w.look()
	wantChange(t, c, nil, []string{"a", "b"})
	nothing()
}

func TestWatchFromNoFile(t *testing.T) {
	p, _ := newPairing(t)
	w := &p.watcher
	for range 5 {
		if c, ok := w.look(); ok {
			t.Fatalf("%+v", c)
		}
	}
	write(t, p.approvedPath(), "")
	w.look()
	if c, ok := w.look(); !ok || c.Err == nil {
		t.Fatalf("%+v", c)
	}
	write(t, p.approvedPath(), `{"a": {}}`)
	c, _ := w.look()
	wantChange(t, c, []string{"a"}, nil)
}

func TestWatchFromADamagedStart(t *testing.T) {
	p, _ := newPairing(t)
	write(t, p.approvedPath(), `{`)
	w := &must[*Pairing](t)(OpenPairing(p.dir, "mobile")).watcher
	w.look()
	if c, ok := w.look(); !ok || c.Err == nil {
		t.Fatalf("%+v", c)
	}
	if c, ok := w.look(); ok {
		t.Fatalf("said again: %+v", c)
	}
	write(t, p.approvedPath(), `{"a": {}}`)
	c, _ := w.look()
	wantChange(t, c, []string{"a"}, nil)
}
