package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

type job struct {
	run  func(*Tx) error
	done func(error)
}

// queue has the writes that wait for the writer.
type queue struct {
	jobs chan job
	many chan struct{} // 1 slot: manyWait writes are in jobs
}

func newQueue() queue { return queue{jobs: make(chan job, 4096), many: make(chan struct{}, 1)} }

func (q *queue) push(j job) {
	q.jobs <- j
	if len(q.jobs) >= manyWait {
		select {
		case q.many <- struct{}{}:
		default:
		}
	}
}

// maxGroup bounds one transaction, so the first write of a long queue doesn't wait for the last.
const maxGroup = 512

// Do runs f in a transaction together with other waiting writes, and returns when it is on the disk
// (with SyncEvery: when the system has it). If f fails, nothing of it is stored. f may run more
// than once. Writes of one goroutine keep their order.
func (s *Store) Do(f func(*Tx) error) error {
	done := make(chan error, 1)
	s.Go(f, func(err error) { done <- err })
	return <-done
}

// Go is Do without waiting. The writer's goroutine calls done, which must neither block nor write.
func (s *Store) Go(f func(*Tx) error, done func(error)) {
	s.enter.RLock()
	defer s.enter.RUnlock()
	select {
	case <-s.closing:
		done(ErrClosed)
	default:
		s.queue.push(job{f, done})
	}
}

func (s *Store) writer(ctx context.Context) {
	defer close(s.closed)
	tx := &Tx{ctx: ctx, stmt: s.stmt}
	var group []job
	var pace pace
	for {
		select {
		case j := <-s.queue.jobs:
			group = append(group[:0], j)
		case <-s.closing:
			s.drain(tx)
			return
		}
		if wait := pace.wait(time.Now()); wait > 0 {
			s.queue.await(wait)
		}
		group = s.queue.gather(group)
		pace.commit(time.Now(), len(group))
		s.commit(tx, group)
	}
}

// manyWait is the size of a group that doesn't wait for more.
const manyWait = 64

// pace spreads the commits of a busy store, because each costs about the same, however small. It
// delays none when writes arrive one by one.
type pace struct {
	window time.Time // when the current one began
	writes int       // in it
	busy   bool      // the previous one had many
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

// commit records the start of a commit.
func (p *pace) commit(now time.Time, writes int) {
	p.begun = now
	p.writes += writes
}

// await waits until many writes are queued, or for a time.
func (q *queue) await(wait time.Duration) {
	select {
	case <-q.many: // from the previous group
	default:
	}
	if len(q.jobs) >= manyWait {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-q.many:
	case <-t.C:
	}
}

func (q *queue) gather(group []job) []job {
	for len(group) < maxGroup {
		select {
		case j := <-q.jobs:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// drain makes the writes that were queued before the store began to close.
func (s *Store) drain(tx *Tx) {
	for {
		group := s.queue.gather(nil)
		if len(group) == 0 {
			return
		}
		s.commit(tx, group)
	}
}

func (s *Store) commit(tx *Tx, group []job) {
	if err := s.journal.unflushed.Load(); err != nil { // acknowledging more would make it worse
		for _, j := range group {
			j.done(*err)
		}
		return
	}
	if s.journal.every > 0 {
		defer s.journal.loosen()
	}
	err := s.raw(tx, func() error {
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
	// One write failed and took the others along, so each gets a transaction of its own.
	for _, j := range group {
		j.done(s.raw(tx, func() error { return j.run(tx) }))
	}
}

// raw runs f in a transaction of its own.
func (s *Store) raw(tx *Tx, f func() error) error {
	return s.conn.Raw(func(any) error { return tx.run(f) })
}

// prepare creates the statements of Tx. They are the driver's own: database/sql adds up to a tenth
// to the cost of a write, and is of no use to one goroutine with one connection.
func prepare(conn *sql.Conn, stmt map[string]driver.Stmt) error {
	return conn.Raw(func(c any) error {
		for name, text := range writes {
			st, err := c.(driver.Conn).Prepare(text)
			if err != nil {
				return fmt.Errorf("prepare %s: %w", name, err)
			}
			stmt[name] = st
		}
		return nil
	})
}

func unprepare(conn *sql.Conn, stmt map[string]driver.Stmt) error {
	return conn.Raw(func(any) error {
		var errs []error
		for _, st := range stmt {
			errs = append(errs, st.Close())
		}
		return errors.Join(errs...)
	})
}

// Tx is a transaction. Use it only inside the function given to Do or Go.
type Tx struct {
	ctx  context.Context
	stmt map[string]driver.Stmt
	args []driver.NamedValue // of the running statement
}

func (t *Tx) run(f func() error) error {
	if err := t.must("begin"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		if err = t.must("commit"); err == nil {
			return nil
		}
	}
	return errors.Join(err, t.must("rollback"))
}

// exec runs one of writes and returns the number of changed rows and the last row id.
func (t *Tx) exec(name string, args ...any) (changed, id int64, err error) {
	values, err := t.values(args)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	r, err := t.stmt[name].(driver.StmtExecContext).ExecContext(t.ctx, values)
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

// values converts the arguments of a statement to the driver's types. It reuses the list of the
// previous statement.
func (t *Tx) values(args []any) ([]driver.NamedValue, error) {
	t.args = t.args[:0]
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		t.args = append(t.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return t.args, nil
}
