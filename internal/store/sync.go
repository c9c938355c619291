package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// An Option changes how a store is opened.
type Option func(*Store)

// SyncEvery makes a commit count before it is flushed to the disk: flushes follow in the background, one so long after the
// first commit that waits for it. The end of the process loses nothing, since the system has the writes by then; the end
// of the machine may lose the commits of that time, together with what was told of them.
func SyncEvery(d time.Duration) Option { return func(s *Store) { s.syncEvery = d } }

// metaLoose marks a database whose newest commits may not be on the disk. Its value is the boot of the machine in which
// they were made, empty where that is not known.
const metaLoose = "loose"

// bootFile names the running boot of a Linux machine, also within a container.
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

// afterPowerLoss begins a new epoch of every outbox where the machine ended before the last commits were on the disk: numbers
// that were used by lost entries would be used again, and a device that has seen those would take the new ones for known.
func (s *Store) afterPowerLoss(ctx context.Context) error {
	var value [][]byte
	rows, err := s.conn.QueryContext(ctx, "SELECT v FROM meta WHERE k=?", metaLoose)
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
		if _, err := s.conn.ExecContext(ctx, "UPDATE device SET epoch=lower(hex(randomblob(6)))"); err != nil {
			return err
		}
	}
	if s.syncEvery == 0 {
		_, err := s.conn.ExecContext(ctx, "DELETE FROM meta WHERE k=?", metaLoose)
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "INSERT INTO meta(k, v) VALUES(?, ?) ON CONFLICT(k) DO UPDATE SET v=excluded.v", metaLoose, now); err != nil {
		return err
	}
	// The mark is on the disk before the first commit that may not be.
	_, err = s.conn.ExecContext(ctx, "PRAGMA synchronous=NORMAL")
	return err
}

// tighten brings everything to the disk, at the end, and takes the mark away.
func (s *Store) tighten(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "PRAGMA synchronous=FULL")
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "DELETE FROM meta WHERE k='"+metaLoose+"'")
	}
	if err != nil {
		return fmt.Errorf("flush the store: %w", err)
	}
	return nil
}

// syncer flushes the journal, each time syncEvery after the first commit since the last flush began.
func (s *Store) syncer() {
	defer close(s.synced)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		select {
		case <-s.loose:
		case <-s.closing:
			return
		}
		timer.Reset(s.syncEvery)
		select {
		case <-timer.C:
		case <-s.closing:
			return // tighten does the rest
		}
		err := s.flush(s.path + "-wal")
		if err == nil {
			s.unflushed.Store(nil)
			continue
		}
		err = fmt.Errorf("flush the journal to the disk: %w", err)
		s.unflushed.Store(&err)
		s.loosen() // try again, even when nothing is committed meanwhile
	}
}

// loosen says that there is something to flush.
func (s *Store) loosen() {
	select {
	case s.loose <- struct{}{}:
	default:
	}
}

// flushFile brings a file to the disk. The journal is opened anew each time, for SQLite may have made another one; it holds
// none of SQLite's locks, which closing would give up.
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
