package store

import (
	"fmt"
	"testing"
	"time"
)

func TestAging(t *testing.T) {
	s := open(t, t.TempDir())
	day := 24 * time.Hour
	for i, ages := range [][]time.Duration{{}, {time.Hour}, {7 * day, 6*day + time.Hour, time.Hour}, {9 * day}} {
		n := device(t, s, fmt.Sprintf("tel-%d", i))
		for seq, age := range ages {
			do(t, s, func(tx *Tx) error { return appendRow(tx, n, int64(seq)+1, t0.Add(-age)) })
		}
	}
	got := value[[]Aging](t)(s.Aging(ctx, t0.Add(-6*day), 10))
	if len(got) != 2 || got[0] != (Aging{"tel-3", 1, t0.Add(-9 * day)}) || got[1] != (Aging{"tel-2", 2, t0.Add(-7 * day)}) {
		t.Errorf("%+v", got)
	}
	if got := value[[]Aging](t)(s.Aging(ctx, t0.Add(-6*day), 1)); len(got) != 1 || got[0].Device != "tel-3" {
		t.Errorf("the oldest alone: %+v", got)
	}
	if got := value[[]Aging](t)(s.Aging(ctx, t0.Add(-30*day), 10)); len(got) != 0 {
		t.Errorf("nothing is that old: %+v", got)
	}
}
