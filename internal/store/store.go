// Package store keeps what must survive: devices, the inbox of accepted messages, the outbox of each device, question
// cards, open messages, deliveries, and who owns what behind the front door of the API. It is the only package that speaks SQL.
//
// One SQLite file in write-ahead mode, synchronous=FULL unless SyncEvery says otherwise. All writing goes through one goroutine that puts whatever waits
// into one transaction (group commit), so that 64 writers cost about as many disk flushes as one. Reading uses a small
// pool of connections of its own. Every method may be called from several goroutines at once.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite" // and the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// File is the name of the database in the data folder.
const File = "hermes-mobile.db"

// ErrClosed: the store was closed before the write could be made.
var ErrClosed = errors.New("the store is closed")

// Store is an open database.
type Store struct {
	path  string
	read  *sql.DB
	write *sql.DB
	conn  *sql.Conn // the writer's only connection
	stmt  map[string]*sql.Stmt
	reads map[string]*sql.Stmt

	queue   chan job
	many    chan struct{} // 1 slot: manyWait writes are in queue
	enter   sync.RWMutex  // held for reading while something is put into queue: nothing is once closing is closed
	closing chan struct{}
	closed  chan struct{}

	syncEvery time.Duration // 0: each commit is flushed
	flush     func(path string) error
	loose     chan struct{} // 1 slot: there are commits to be flushed
	synced    chan struct{} // closed when no flush runs any more
	unflushed atomic.Pointer[error]
}

type job struct {
	run  func(*Tx) error
	done func(error)
}

// maxGroup bounds one transaction, so that the first of a long queue does not wait for the last.
const maxGroup = 512

// Open opens the database in a folder, makes it where there is none, and brings its schema up to date.
func Open(ctx context.Context, dir string, opts ...Option) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	path := filepath.Join(dir, File)
	s := &Store{path: path, queue: make(chan job, 4096), many: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}),
		stmt: map[string]*sql.Stmt{}, reads: map[string]*sql.Stmt{}, flush: flushFile, loose: make(chan struct{}, 1), synced: make(chan struct{})}
	for _, o := range opts {
		o(s)
	}
	if err := s.open(ctx, path); err != nil {
		s.shut()
		return nil, fmt.Errorf("open store %s: %w%s", path, err, hint(err))
	}
	if s.syncEvery > 0 {
		go s.syncer()
	} else {
		close(s.synced)
	}
	go s.writer(context.WithoutCancel(ctx))
	return s, nil
}

// hint says what is most likely wrong where the database library has only a number for it.
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
	q := url.Values{"_pragma": append(pragmas, "busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)")}
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
		return fmt.Errorf("begin anew after a restore: %w", err)
	}
	if err := s.afterPowerLoss(ctx); err != nil {
		return fmt.Errorf("begin anew after a power loss: %w", err)
	}
	for name, text := range writes {
		if s.stmt[name], err = s.conn.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
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

// Do runs f in a transaction together with whatever else waits, and returns when it is on the disk (with SyncEvery: when
// the system has it). When f fails nothing
// of it is stored; f may be run more than once. Writes of one goroutine are made in the order of its calls.
func (s *Store) Do(f func(*Tx) error) error {
	done := make(chan error, 1)
	s.Go(f, func(err error) { done <- err })
	return <-done
}

// Go is Do without waiting: done is called from the writer's goroutine and must neither block nor write.
func (s *Store) Go(f func(*Tx) error, done func(error)) {
	s.enter.RLock()
	defer s.enter.RUnlock()
	select {
	case <-s.closing:
		done(ErrClosed)
	default:
		s.queue <- job{f, done}
		if len(s.queue) >= manyWait {
			select {
			case s.many <- struct{}{}:
			default:
			}
		}
	}
}

func (s *Store) writer(ctx context.Context) {
	defer close(s.closed)
	tx := &Tx{ctx: ctx, stmt: s.stmt, conn: s.conn}
	var group []job
	var pace pace
	for {
		select {
		case j := <-s.queue:
			group = append(group[:0], j)
		case <-s.closing:
			s.drain(tx)
			return
		}
		if wait := pace.wait(time.Now()); wait > 0 {
			s.await(wait)
		}
		group = s.gather(group)
		pace.commit(time.Now(), len(group))
		s.commit(tx, group)
	}
}

// manyWait is how many writes are a group that waits for no more.
const manyWait = 64

// pace spreads the commits of a busy store: each costs much the same, however little is in it. It holds none back where writes
// come one by one.
type pace struct {
	window time.Time // when the running one began
	writes int       // in it
	busy   bool      // there were many in the one before
	begun  time.Time // the last commit
}

const (
	paceWindow  = 32 * time.Millisecond
	manyWrites  = 16 // in a window
	commitEvery = 4 * time.Millisecond
)

// wait returns how long a commit waits for other writes to join it.
func (p *pace) wait(now time.Time) time.Duration {
	if past := now.Sub(p.window); past >= paceWindow {
		p.busy = p.writes >= manyWrites && past < 2*paceWindow
		p.window, p.writes = now, 0
	}
	if !p.busy {
		return 0
	}
	return max(0, commitEvery-now.Sub(p.begun))
}

// commit notes that a commit of some writes begins.
func (p *pace) commit(now time.Time, writes int) {
	p.begun = now
	p.writes += writes
}

// await waits until many writes are queued, but not for long.
func (s *Store) await(wait time.Duration) {
	select {
	case <-s.many: // of a group that is made
	default:
	}
	if len(s.queue) >= manyWait {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-s.many:
	case <-t.C:
	}
}

func (s *Store) gather(group []job) []job {
	for len(group) < maxGroup {
		select {
		case j := <-s.queue:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// drain writes what was queued before the store began to close.
func (s *Store) drain(tx *Tx) {
	for {
		group := s.gather(nil)
		if len(group) == 0 {
			return
		}
		s.commit(tx, group)
	}
}

func (s *Store) commit(tx *Tx, group []job) {
	if err := s.unflushed.Load(); err != nil { // promising more would make it worse
		for _, j := range group {
			j.done(*err)
		}
		return
	}
	if s.syncEvery > 0 {
		defer s.loosen()
	}
	err := tx.run(func() error {
		for _, j := range group {
			if err := j.run(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || len(group) == 1 {
		for _, j := range group {
			j.done(err)
		}
		return
	}
	// One of them failed and took the others along: each gets a transaction of its own.
	for _, j := range group {
		j.done(tx.run(func() error { return j.run(tx) }))
	}
}

// Close writes what waits and closes the database.
func (s *Store) Close() error {
	s.enter.Lock()
	close(s.closing)
	s.enter.Unlock()
	<-s.closed
	<-s.synced
	var err error
	if s.syncEvery > 0 {
		err = s.tighten(context.Background())
	}
	return errors.Join(err, s.shut())
}

func (s *Store) shut() error {
	var errs []error
	for _, st := range s.stmt {
		if st != nil {
			errs = append(errs, st.Close())
		}
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

// Backup writes a consistent copy of the database to a file that must not exist, while everything goes on.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // VACUUM INTO takes an empty file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("backup: %s exists already: name a new file", path)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_ = f.Close()
	db, err := sql.Open("sqlite", source(s.path)) // the readers' connections may write nothing at all
	if err == nil {
		defer db.Close()
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

// metaCopy marks a database as a copy made by Backup.
const metaCopy = "copy"

// markCopy marks a copy, so that a server started on it knows that it goes back in time.
func markCopy(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "INSERT INTO meta(k, v) VALUES(?, x'01') ON CONFLICT(k) DO NOTHING", metaCopy)
	return err
}

// afterRestore begins a new epoch of every outbox in a database that was restored from a copy: numbers that were used
// after the copy was made would be used again, and a device that is ahead would take new frames for known ones. People log in again: a login that was ended after the copy
// was made must not come back.
func afterRestore(ctx context.Context, c *sql.Conn) error {
	var n int
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM meta WHERE k=?", metaCopy).Scan(&n); err != nil || n == 0 {
		return err
	}
	_, err := c.ExecContext(ctx, "BEGIN IMMEDIATE; UPDATE device SET epoch=lower(hex(randomblob(6))); DELETE FROM front_token; DELETE FROM meta WHERE k='"+metaCopy+"'; COMMIT")
	return err
}

// Tx is a transaction. It is used inside the function given to Do or Go only.
type Tx struct {
	ctx  context.Context
	conn *sql.Conn
	stmt map[string]*sql.Stmt
}

func (t *Tx) run(f func() error) error {
	if _, err := t.conn.ExecContext(t.ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	err := f()
	if err == nil {
		if _, err = t.conn.ExecContext(t.ctx, "COMMIT"); err == nil {
			return nil
		}
		err = fmt.Errorf("commit: %w", err)
	}
	if _, e := t.conn.ExecContext(t.ctx, "ROLLBACK"); e != nil {
		err = errors.Join(err, fmt.Errorf("rollback: %w", e))
	}
	return err
}

// exec runs one of writes and returns the number of rows it changed and the last row id.
func (t *Tx) exec(name string, args ...any) (changed, id int64, err error) {
	r, err := t.stmt[name].ExecContext(t.ctx, args...)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	if changed, err = r.RowsAffected(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	if id, err = r.LastInsertId(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	return changed, id, nil
}

func (t *Tx) must(name string, args ...any) error {
	_, _, err := t.exec(name, args...)
	return err
}

// rows runs one of queries and calls scan for each row.
func (s *Store) rows(ctx context.Context, name string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := s.reads[name].QueryContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
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

// enough takes the error of rows that were ended early for what it is.
func enough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
