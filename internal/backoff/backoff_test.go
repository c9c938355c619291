package backoff

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelay(t *testing.T) {
	p := Policy{Base: time.Second, Max: 30 * time.Second}
	for n, top := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, 4: 16 * time.Second,
		5: 30 * time.Second, 6: 30 * time.Second, 1000: 30 * time.Second, math.MaxInt: 30 * time.Second,
	} {
		seen := map[time.Duration]bool{}
		for range 200 {
			d := p.Delay(n)
			if d < top/2 || d > top {
				t.Fatalf("retry %d: waited %v, want between %v and %v", n, d, top/2, top)
			}
			seen[d] = true
		}
		if len(seen) < 100 {
			t.Errorf("retry %d: only %d different waits in 200 draws", n, len(seen))
		}
	}
}

func TestDelayLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		p        Policy
		n        int
		min, max time.Duration
	}{
		{"zero value", Policy{}, 5, 0, 0},
		{"negative base", Policy{Base: -time.Second, Max: time.Second}, 0, 0, 0},
		{"maximum below base", Policy{Base: time.Minute, Max: time.Second}, 9, 30 * time.Second, time.Minute},
		{"near overflow", Policy{Base: time.Hour, Max: math.MaxInt64}, 500, math.MaxInt64 / 2, math.MaxInt64},
	} {
		if d := c.p.Delay(c.n); d < c.min || d > c.max {
			t.Errorf("%s: waited %v, want between %v and %v", c.name, d, c.min, c.max)
		}
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Policy{Base: time.Second, Max: time.Minute}
		began := time.Now()
		if err := p.Wait(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("waited %v, want between 2s and 4s", d)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := p.Wait(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("ended after %v, want 1s", d)
		}
	})
}
