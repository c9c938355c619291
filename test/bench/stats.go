package main

import (
	"fmt"
	"slices"
	"time"
)

// spread shows repeated measurements: the middle one, and how far they lie apart, which on a shared machine is a lot.
func spread(format string, values []float64) string {
	v := slices.Sorted(slices.Values(values))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	if len(v) == 1 {
		return fmt.Sprintf(format, mid)
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+", %d runs)", mid, v[0], v[len(v)-1], len(v))
}

// quantile of durations, which it sorts.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
