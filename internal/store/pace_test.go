package store

import (
	"testing"
	"time"
)

// Commits that come one by one wait for nothing. Where many come they are spread, and no one waits longer than that takes.
func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for range 100 {
		if wait := p.next(now); wait != 0 {
			t.Fatalf("a commit waits %v though the last was %v ago", wait, busyFor/4)
		}
		now = now.Add(busyFor / 4)
	}
	waited := 0
	begin := now
	for i := range 1000 {
		wait := p.next(now)
		if wait < 0 || wait > commitEvery {
			t.Fatalf("commit %d waits %v", i, wait)
		}
		if wait > 0 {
			waited++
		}
		now = now.Add(wait + commitEvery/10) // and it takes so long
	}
	if waited < 900 || now.Sub(begin) < 900*commitEvery {
		t.Errorf("%d of 1000 commits waited, and took %v", waited, now.Sub(begin))
	}
	now = now.Add(time.Second)
	if wait := p.next(now); wait != 0 {
		t.Errorf("after a rest a commit waits %v", wait)
	}
}
