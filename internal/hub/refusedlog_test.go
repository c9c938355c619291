package hub

import (
	"testing"
	"time"
)

func TestRefusedLinesAreBounded(t *testing.T) {
	var l refusedLines
	now := time.Unix(1_800_000_000, 0)
	logged := 0
	for range 1000 {
		if ok, before := l.next(now); ok {
			logged++
		} else if before != 0 {
			t.Fatalf("%d left out before", before)
		}
		now = now.Add(time.Millisecond)
	}
	if logged != maxRefusedLines {
		t.Errorf("%d lines", logged)
	}
	if ok, before := l.next(now.Add(refusedLinesEvery)); !ok || before != 1000-maxRefusedLines {
		t.Errorf("a minute later: %t, %d left out", ok, before)
	}
}
