package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openLoose opens a store that flushes in the background, by a function of the test's.
func openLoose(t *testing.T, dir string, flush func(path string) error) *Store {
	t.Helper()
	s, err := Open(ctx, dir, SyncEvery(time.Millisecond), func(s *Store) { s.journal.flush = flush })
	ok(t, err)
	t.Cleanup(func() {
		select {
		case <-s.closing:
		default:
			ok(t, s.Close())
		}
	})
	return s
}

// Each commit is followed by a flush of the journal, without another commit to bring it about.
func TestCommitsAreFlushedBehind(t *testing.T) {
	flushed := make(chan string)
	stop := make(chan struct{})
	dir := t.TempDir()
	s := openLoose(t, dir, func(path string) error {
		select {
		case flushed <- path:
		case <-stop:
		}
		return flushFile(path)
	})
	defer close(stop)
	for i := range 3 {
		// It returns although the flush has not begun: nobody has let it.
		within(t, time.Minute, "a commit", func() { do(t, s, func(tx *Tx) error { return tx.SetMeta("k", []byte{byte(i)}) }) })
		within(t, time.Minute, "the flush", func() {
			if path := <-flushed; path != filepath.Join(dir, File+"-wal") {
				t.Errorf("%s is flushed", path)
			}
		})
	}
}

// While the disk takes no flush nothing more is promised; when it does again all goes on.
func TestFlushThatFails(t *testing.T) {
	broken := make(chan bool, 1)
	broken <- true
	s := openLoose(t, t.TempDir(), func(string) error {
		bad := <-broken
		broken <- bad
		if bad {
			return errors.New("no such disk")
		}
		return nil
	})
	write := func() error { return s.Do(func(tx *Tx) error { return tx.SetMeta("k", []byte("v")) }) }
	within(t, time.Minute, "a refusal", func() {
		for {
			if err := write(); err != nil {
				if !strings.Contains(err.Error(), "no such disk") {
					t.Errorf("a write fails with %q", err)
				}
				return
			}
		}
	})
	<-broken
	broken <- false
	within(t, time.Minute, "the recovery", func() {
		for write() != nil {
			time.Sleep(time.Millisecond)
		}
	})
}

// Outboxes begin anew where the machine ended before all was flushed, and only there.
func TestEpochAfterPowerLoss(t *testing.T) {
	real := bootFile
	defer func() { bootFile = real }()
	bootFile = filepath.Join(t.TempDir(), "boot")
	reboot := func(id string) { ok(t, os.WriteFile(bootFile, []byte(id+"\n"), 0o600)) }
	if len(boot()) > 0 {
		t.Fatal("there is a boot before it was written")
	}
	reboot("one")
	if len(boot()) == 0 {
		t.Skip("boots of this system have no names, so each end without a word counts as a power loss")
	}
	epoch := func(s *Store) string {
		d, err := s.Device(ctx, "d")
		ok(t, err)
		return d.Epoch
	}
	dir := t.TempDir()
	s := openLoose(t, dir, flushFile)
	do(t, s, func(tx *Tx) error { return tx.AddDevice(&Device{ID: "d", Epoch: "first"}, t0) })
	was := epoch(s)
	killed, lost, tight := t.TempDir(), t.TempDir(), t.TempDir()
	for _, to := range []string{killed, lost, tight} {
		copyFiles(t, dir, to)
	}
	ok(t, s.Close())

	if now := epoch(openLoose(t, killed, flushFile)); now != was {
		t.Errorf("after the end of the process alone the epoch is %q, it was %q", now, was)
	}
	reboot("two")
	if now := epoch(openLoose(t, lost, flushFile)); now == was {
		t.Errorf("after a power loss the epoch is still %q", now)
	}
	o := open(t, tight) // the owner has changed the setting meanwhile
	again := epoch(o)
	if again == was {
		t.Errorf("after a power loss and another setting the epoch is still %q", again)
	}
	ok(t, o.Close())
	reboot("three")
	if now := epoch(open(t, tight)); now != again {
		t.Errorf("the epoch changed twice for one power loss: %q, then %q", again, now)
	}
	if now := epoch(openLoose(t, dir, flushFile)); now != was {
		t.Errorf("after a clean end and a reboot the epoch is %q, it was %q", now, was)
	}
}
