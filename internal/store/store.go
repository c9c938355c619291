// Package store stores what must survive: devices, the inbox of accepted messages, the outbox of
// each device, question cards, open messages, deliveries, and the data of the API proxy. It is the
// only package that uses SQL.
//
// The database is one SQLite file in write-ahead mode, with synchronous=FULL unless SyncEvery
// changes that. One goroutine makes all writes and combines those that wait into one transaction
// (group commit), so 64 writers cost about as many disk flushes as one. Reads use a small pool of
// connections of their own. Store is safe for concurrent use.
//
// Queries and changes of one subject are grouped: Store.Deliveries has the queries and
// Tx.Deliveries the changes.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite" // and the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// File is the name of the database in the data folder.
const File = "hermes-mobile.db"

// ErrClosed reports that the store was closed before the write.
var ErrClosed = errors.New("the store is closed")

// Store is an open database.
type Store struct {
	path  string
	read  *sql.DB
	write *sql.DB
	conn  *sql.Conn              // the writer's only connection
	stmt  map[string]driver.Stmt // used while conn is held raw only
	reads map[string]*sql.Stmt

	queue   queue
	enter   sync.RWMutex // held for reading while a write enters the queue; none does once closing is closed
	closing chan struct{}
	closed  chan struct{}
	journal journal
}

// Open opens the database in a folder, creates it if there is none, and upgrades its schema.
func Open(ctx context.Context, dir string, opts ...Option) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	path := filepath.Join(dir, File)
	s := &Store{path: path, queue: newQueue(), closing: make(chan struct{}), closed: make(chan struct{}),
		stmt: map[string]driver.Stmt{}, reads: map[string]*sql.Stmt{}, journal: newJournal(path)}
	for _, o := range opts {
		o(s)
	}
	if err := s.open(ctx, path); err != nil {
		_ = s.shut() // the first error says why
		return nil, fmt.Errorf("open store %s: %w%s", path, err, hint(err))
	}
	if s.journal.every > 0 {
		go s.journal.run(s.closing)
	} else {
		close(s.journal.synced)
	}
	go s.writer(context.WithoutCancel(ctx))
	return s, nil
}

// hint returns the likely cause of an error for which the database library has only a number.
func hint(err error) string {
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		switch failed.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
			return "; is the disk full?"
		}
	}
	return ""
}

func source(path string, pragmas ...string) string {
	q := url.Values{"_pragma": append(pragmas, "busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", journalLimit)}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func (s *Store) open(ctx context.Context, path string) error {
	var err error
	if s.write, err = sql.Open("sqlite", source(path, "cache_size(-8000)")); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	if err := migrate(ctx, s.conn); err != nil {
		return err
	}
	if err := afterRestore(ctx, s.conn); err != nil {
		return fmt.Errorf("reset outboxes after a restore: %w", err)
	}
	if err := s.journal.afterPowerLoss(ctx, s.conn); err != nil {
		return fmt.Errorf("reset outboxes after a power loss: %w", err)
	}
	if err := prepare(s.conn, s.stmt); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", source(path, "cache_size(-4000)", "query_only(1)")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4)
	for name, text := range queries {
		if s.reads[name], err = s.read.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	return nil
}

// Close finishes the waiting writes and closes the database.
func (s *Store) Close() error {
	s.enter.Lock()
	close(s.closing)
	s.enter.Unlock()
	<-s.closed
	<-s.journal.synced
	var err error
	if s.journal.every > 0 {
		err = s.journal.tighten(context.Background(), s.conn)
	}
	return errors.Join(err, s.shut())
}

func (s *Store) shut() error {
	var errs []error
	if len(s.stmt) > 0 {
		errs = append(errs, unprepare(s.conn, s.stmt))
	}
	for _, st := range s.reads {
		if st != nil {
			errs = append(errs, st.Close())
		}
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	for _, db := range []*sql.DB{s.write, s.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Backup writes a consistent copy of the database to a file that must not exist. It doesn't
// interrupt other work.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // VACUUM INTO accepts an empty file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("backup: %s already exists: choose a new file", path)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_ = f.Close()
	db, err := sql.Open("sqlite", source(s.path)) // the readers' connections may write nothing at all
	if err == nil {
		defer func() { _ = db.Close() }() // it only reads
		if _, err = db.ExecContext(ctx, "VACUUM INTO ?", path); err == nil {
			err = markCopy(ctx, path)
		}
	}
	if err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// metaCopy marks a database as a copy by Backup.
const metaCopy = "copy"

// markCopy marks a copy, so a server that starts on it knows that it goes back in time.
func markCopy(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO meta(k, v) VALUES(?, x'01') ON CONFLICT(k) DO NOTHING", metaCopy)
	return errors.Join(err, db.Close())
}

// afterRestore begins a new epoch of every outbox in a database that was restored from a copy.
// Otherwise numbers assigned after the copy would be assigned again, and a device that is ahead
// would take new frames for known ones. It also ends all logins and removes all keys, because one
// that was revoked after the copy must not come back. The audit log gets an entry about the gap.
func afterRestore(ctx context.Context, c *sql.Conn) error {
	var n int
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM meta WHERE k=?", metaCopy).Scan(&n); err != nil || n == 0 {
		return err
	}
	_, err := c.ExecContext(ctx, "BEGIN IMMEDIATE; UPDATE device SET epoch=lower(hex(randomblob(6))); DELETE FROM front_token; DELETE FROM front_key; DELETE FROM meta WHERE k='"+metaCopy+"';"+
		"INSERT INTO audit(at, actor, origin, action, subject, detail) VALUES(CAST(unixepoch('subsec')*1000 AS INTEGER), 'server', '', 'backup.restored', '', ''); COMMIT")
	return err
}

// rows runs one of queries and calls scan for each row.
func (s *Store) rows(ctx context.Context, name string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := s.reads[name].QueryContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has its error
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// errEnough ends rows early.
var errEnough = errors.New("enough")

// enough returns nil for errEnough.
func enough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
