package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

type job struct {
	run  func(*Tx) error
	done func(error)
}

// maxGroup bounds one transaction, so that the first of a long queue does not wait for the last.
const maxGroup = 512

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
	tx := &Tx{ctx: ctx, stmt: s.stmt}
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
	// One of them failed and took the others along: each gets a transaction of its own.
	for _, j := range group {
		j.done(s.raw(tx, func() error { return j.run(tx) }))
	}
}

// raw runs f in a transaction of its own.
func (s *Store) raw(tx *Tx, f func() error) error {
	return s.conn.Raw(func(any) error { return tx.run(f) })
}

// prepare makes the statements of Tx. They are the driver's own: what database/sql adds to each is as much as a tenth of a write, and
// is of no use to one goroutine with one connection.
func (s *Store) prepare() error {
	return s.conn.Raw(func(c any) error {
		for name, text := range writes {
			st, err := c.(driver.Conn).Prepare(text)
			if err != nil {
				return fmt.Errorf("prepare %s: %w", name, err)
			}
			s.stmt[name] = st
		}
		return nil
	})
}

func (s *Store) unprepare() error {
	return s.conn.Raw(func(any) error {
		var errs []error
		for _, st := range s.stmt {
			errs = append(errs, st.Close())
		}
		return errors.Join(errs...)
	})
}

// Tx is a transaction. It is used inside the function given to Do or Go only.
type Tx struct {
	ctx  context.Context
	stmt map[string]driver.Stmt
	args []driver.NamedValue // of the statement that runs
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

// exec runs one of writes and returns the number of rows it changed and the last row id.
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

// values are the arguments of a statement in the forms that the driver takes. The list is that of the statement before.
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
