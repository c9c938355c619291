package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// An Option changes how a store is opened.
type Option func(*Store)

// SyncEvery acknowledges a commit before it is flushed to the disk. Flushes follow in the
// background, each d after the first commit that waits for it. A crash of the process loses
// nothing, since the system has the writes by then. A crash of the machine may lose the commits of
// that time, although they were acknowledged.
func SyncEvery(d time.Duration) Option { return func(s *Store) { s.journal.every = d } }

// journal flushes SQLite's journal to the disk in the background, after commits that don't flush.
type journal struct {
	path  string
	every time.Duration // 0: each commit is flushed
	flush func(path string) error

	loose     chan struct{} // 1 slot: there are commits to flush
	synced    chan struct{} // closed when no flush runs any more
	unflushed atomic.Pointer[error]
}

func newJournal(database string) journal {
	return journal{path: database + "-wal", flush: flushFile, loose: make(chan struct{}, 1), synced: make(chan struct{})}
}

// metaLoose marks a database whose newest commits may not be on the disk. Its value is the boot id
// of the machine at that time, empty if unknown.
const metaLoose = "loose"

// bootFile has the id of the running boot on Linux, also in a container.
var bootFile = "/proc/sys/kernel/random/boot_id"

func boot() []byte {
	if runtime.GOOS != "linux" {
		return []byte{}
	}
	id, err := os.ReadFile(bootFile)
	if err != nil {
		return []byte{}
	}
	return []byte(strings.TrimSpace(string(id)))
}

// afterPowerLoss begins a new epoch of every outbox if the machine stopped before the last commits
// were on the disk. Otherwise numbers of lost entries would be assigned again, and a device that
// has seen those would take the new entries for known ones.
func (j *journal) afterPowerLoss(ctx context.Context, conn *sql.Conn) error {
	var value [][]byte
	rows, err := conn.QueryContext(ctx, "SELECT v FROM meta WHERE k=?", metaLoose)
	if err != nil {
		return err
	}
	for rows.Next() {
		var v []byte
		if err := rows.Scan(&v); err != nil {
			return errors.Join(err, rows.Close())
		}
		value = append(value, v)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	now := boot()
	if len(value) > 0 && (len(now) == 0 || !bytes.Equal(value[0], now)) {
		if _, err := conn.ExecContext(ctx, "UPDATE device SET epoch=lower(hex(randomblob(6)))"); err != nil {
			return err
		}
	}
	if j.every == 0 {
		_, err := conn.ExecContext(ctx, "DELETE FROM meta WHERE k=?", metaLoose)
		return err
	}
	if _, err := conn.ExecContext(ctx, "INSERT INTO meta(k, v) VALUES(?, ?) ON CONFLICT(k) DO UPDATE SET v=excluded.v", metaLoose, now); err != nil {
		return err
	}
	// The mark is on the disk before the first commit that may not be.
	_, err = conn.ExecContext(ctx, "PRAGMA synchronous=NORMAL")
	return err
}

// tighten flushes everything before the store closes, and removes the mark.
func (j *journal) tighten(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "PRAGMA synchronous=FULL")
	if err == nil {
		_, err = conn.ExecContext(ctx, "DELETE FROM meta WHERE k='"+metaLoose+"'")
	}
	if err != nil {
		return fmt.Errorf("flush the store: %w", err)
	}
	return nil
}

// run flushes the journal, each time j.every after the first commit since the last flush began,
// until closing is closed.
func (j *journal) run(closing <-chan struct{}) {
	defer close(j.synced)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		select {
		case <-j.loose:
		case <-closing:
			return
		}
		timer.Reset(j.every)
		select {
		case <-timer.C:
		case <-closing:
			return // tighten flushes the rest
		}
		err := j.flush(j.path)
		if err == nil {
			j.unflushed.Store(nil)
			continue
		}
		err = fmt.Errorf("flush the journal to the disk: %w", err)
		j.unflushed.Store(&err)
		j.loosen() // try again, even without further commits
	}
}

// loosen reports that there is something to flush.
func (j *journal) loosen() {
	select {
	case j.loose <- struct{}{}:
	default:
	}
}

// flushFile flushes a file to the disk. It opens the journal each time, because SQLite may have
// created another one. It holds none of SQLite's locks, which a close would release.
func flushFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
