package store

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// hold keeps the writer busy until the returned function is called, so that what is written
// meanwhile becomes one group.
func hold(s *Store) (release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Go(func(*Tx) error {
		once.Do(func() { close(in) })
		<-out
		return nil
	}, func(error) {})
	<-in
	return func() { close(out) }
}

// One job of a group fails: nothing of it is stored, everything of the others is, and each is told
// its own outcome.
func TestFailingJobTakesNobodyAlong(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	bad := errors.New("this one fails")
	for _, failing := range []int{0, 3, 9} {
		do(t, s, func(tx *Tx) error { return tx.Forget(dev, 1000) })
		release := hold(s)
		var wg sync.WaitGroup
		outcome := make([]error, 10)
		for i := range outcome {
			wg.Add(1)
			s.Go(func(tx *Tx) error {
				if err := appendRow(tx, dev, int64(2*i+1), t0); err != nil {
					return err
				}
				if i == failing {
					return bad
				}
				return appendRow(tx, dev, int64(2*i+2), t0)
			}, func(err error) { outcome[i] = err; wg.Done() })
		}
		release()
		wg.Wait()
		want := []int64{}
		for i, err := range outcome {
			if i == failing {
				if !errors.Is(err, bad) {
					t.Errorf("job %d: error %v, want its own", i, err)
				}
				continue
			}
			ok(t, err)
			want = append(want, int64(2*i+1), int64(2*i+2))
		}
		if got := seqs(t, s, dev); !slices.Equal(got, want) {
			t.Errorf("with job %d failing %v is stored, want %v", failing, got, want)
		}
	}
}

// An error of SQLite itself in a group, such as a constraint, is no different.
func TestFailingStatementTakesNobodyAlong(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	do(t, s, func(tx *Tx) error { return appendRow(tx, dev, 5, t0) })
	release := hold(s)
	var wg sync.WaitGroup
	outcome := map[int64]error{}
	for seq := int64(4); seq <= 6; seq++ {
		wg.Add(1)
		s.Go(func(tx *Tx) error { return appendRow(tx, dev, seq, t0) }, func(err error) { outcome[seq] = err; wg.Done() })
	}
	release()
	wg.Wait()
	if outcome[4] != nil || outcome[5] == nil || outcome[6] != nil {
		t.Errorf("outcomes %v: only the number that is taken is to fail", outcome)
	}
	if got := seqs(t, s, dev); !slices.Equal(got, []int64{4, 5, 6}) {
		t.Errorf("stored %v", got)
	}
}

// statement gives the writer another one.
func statement(t *testing.T, s *Store, name, text string) {
	t.Helper()
	ok(t, s.conn.Raw(func(c any) (err error) {
		s.stmt[name], err = c.(driver.Conn).Prepare(text)
		return err
	}))
}

// Writes of one goroutine are made, and told, in the order of its calls, whatever others do.
func TestOrderOfOneWriter(t *testing.T) {
	s := open(t, t.TempDir())
	statement(t, s, "count", "INSERT INTO outbox(device, seq, at, kind, body) SELECT ?, ?, count(*), 1, ? FROM outbox")
	const writers, each = 8, 200
	var all sync.WaitGroup
	told := make([][]int64, writers)
	for w := range writers {
		dev := device(t, s, fmt.Sprint("d", w))
		all.Add(each + 1)
		go func() {
			defer all.Done()
			for i := int64(1); i <= each; i++ {
				failing := rand.IntN(10) == 0
				s.Go(func(tx *Tx) error {
					if failing {
						return errors.New("on purpose")
					}
					return tx.must("count", dev, i, fmt.Append(nil, i))
				}, func(error) {
					told[w] = append(told[w], i) // the writer's goroutine only
					all.Done()
				})
			}
		}()
	}
	all.Wait()
	for w := range writers {
		if len(told[w]) != each || !slices.IsSorted(told[w]) {
			t.Errorf("writer %d heard %v", w, told[w])
		}
		dev := value[*Device](t)(s.Device(ctx, fmt.Sprint("d", w)))
		at := time.Time{}
		for _, o := range value[[]Out](t)(s.Outbox(ctx, dev.N, 0, each)) { // at is how many rows there were: the order of writing
			if o.At.Before(at) {
				t.Errorf("writer %d: entry %d was written before the one before it", w, o.Seq)
			}
			at = o.At
		}
	}
}

// What Do has returned from can be read at once, from another connection.
func TestReadOwnWrites(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	for i := int64(1); i <= 50; i++ {
		do(t, s, func(tx *Tx) error { return appendRow(tx, dev, i, t0) })
		count, newest, _, err := s.OutboxBounds(ctx, dev)
		ok(t, err)
		if int64(count) != i || newest != i {
			t.Fatalf("after %d writes: %d entries, newest %d", i, count, newest)
		}
	}
}

// Everything that is given to the store while it closes is either stored and acknowledged, or
// answered with ErrClosed.
func TestCloseWhileWriting(t *testing.T) {
	for round := range 60 {
		dir := t.TempDir()
		s := open(t, dir)
		dev := device(t, s, "d")
		const writers = 16
		stored := make([][]int64, writers)
		var wg sync.WaitGroup
		for w := range int64(writers) {
			wg.Go(func() {
				for i := int64(0); ; i++ {
					seq := i*writers + w + 1
					done := make(chan error, 1)
					f := func(tx *Tx) error { return appendRow(tx, dev, seq, t0) }
					if w%2 == 0 {
						done <- s.Do(f)
					} else {
						s.Go(f, func(err error) { done <- err })
					}
					switch err := <-done; {
					case err == nil:
						stored[w] = append(stored[w], seq)
					case errors.Is(err, ErrClosed):
						return
					default:
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // somewhere in the middle, each time elsewhere
		within(t, 20*time.Second, fmt.Sprintf("round %d: Close", round), func() { ok(t, s.Close()) })
		within(t, 20*time.Second, fmt.Sprintf("round %d: a write that was given to a closing store", round), wg.Wait)
		if err := s.Do(func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
			t.Errorf("a write after Close: %v", err)
		}
		want := slices.Concat(stored...)
		slices.Sort(want)
		if got := seqs(t, open(t, dir), dev); !slices.Equal(got, want) {
			t.Fatalf("round %d: %d writes were acknowledged, %d are stored", round, len(want), len(got))
		}
	}
}

// Reading after Close gives an error, not a panic.
func TestReadAfterClose(t *testing.T) {
	s := open(t, t.TempDir())
	ok(t, s.Close())
	if _, err := s.Device(ctx, "d"); err == nil {
		t.Error("a closed store was read")
	}
}
