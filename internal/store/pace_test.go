package store

import (
	"testing"
	"time"
)

// Writes that come one by one wait for nothing. Where many come their commits are spread, and none
// waits longer than that takes.
func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for range 200 {
		if wait := p.wait(now); wait != 0 {
			t.Fatalf("a write every %v waits %v", paceWindow/8, wait)
		}
		p.commit(now, 1)
		now = now.Add(paceWindow / 8)
	}
	const commits, took = 1000, commitEvery / 10
	begin, waited := now, 0
	for i := range commits {
		wait := p.wait(now)
		if wait < 0 || wait > commitEvery {
			t.Fatalf("commit %d waits %v", i, wait)
		}
		if wait > 0 {
			waited++
		}
		now = now.Add(wait)
		p.commit(now, 1+int(wait/took))
		now = now.Add(took)
	}
	if waited < commits*9/10 || now.Sub(begin) < commits*9/10*commitEvery {
		t.Errorf("%d of %d commits waited, and took %v", waited, commits, now.Sub(begin))
	}
	now = now.Add(time.Second)
	if wait := p.wait(now); wait != 0 {
		t.Errorf("after a rest a write waits %v", wait)
	}
}
