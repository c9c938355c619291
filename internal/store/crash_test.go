package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The files are copied while writers run, as a crash would leave them: in the copy is everything
// that was acknowledged before, nothing is there in halves, and it goes on from there.
func TestCrashKeepsWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const writers = 8
	var acked [writers]atomic.Int64
	var devs [writers]int64
	for w := range devs {
		devs[w] = device(t, s, fmt.Sprint("d", w))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := int64(1); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				err := s.Do(func(tx *Tx) error { // two rows that belong together
					if err := appendRow(tx, devs[w], 2*i-1, t0); err != nil {
						return err
					}
					return appendRow(tx, devs[w], 2*i, t0)
				})
				if err != nil {
					t.Error(err)
					return
				}
				acked[w].Store(i)
			}
		})
	}
	defer func() { close(stop); wg.Wait() }()
	for round := range 15 {
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond) // writing goes on; the moment is chance
		var before [writers]int64
		for w := range before {
			before[w] = acked[w].Load()
		}
		crashed := t.TempDir()
		copyFiles(t, dir, crashed)
		c := open(t, crashed)
		for w := range writers {
			got := seqs(t, c, devs[w])
			if int64(len(got)) < 2*before[w] || len(got)%2 != 0 {
				t.Fatalf("round %d: writer %d had %d pairs acknowledged, the copy has %d rows", round, w, before[w], len(got))
			}
			for i, seq := range got {
				if seq != int64(i+1) {
					t.Fatalf("round %d: writer %d: row %d is %d", round, w, i, seq)
				}
			}
		}
		do(t, c, func(tx *Tx) error { return appendRow(tx, devs[0], 1<<40, t0) })
		ok(t, c.Close())
	}
}

// A journal that was torn in the middle of its last page costs what was not acknowledged, and
// nothing else.
func TestTornJournal(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dev := device(t, s, "d")
	want := []int64{}
	for i := int64(1); i <= 20; i++ {
		do(t, s, func(tx *Tx) error { return appendRow(tx, dev, i, t0) })
		want = append(want, i)
	}
	good := t.TempDir()
	copyFiles(t, dir, good)
	size := walSize(t, good)
	do(t, s, func(tx *Tx) error { return appendRow(tx, dev, 21, t0) })
	torn := t.TempDir()
	copyFiles(t, dir, torn)
	cut := size + (walSize(t, torn)-size)/2
	truncateWAL(t, torn, cut)
	if got := seqs(t, open(t, torn), dev); !slices.Equal(got, want) {
		t.Errorf("after a torn journal %v is stored, want %v", got, want)
	}
}
