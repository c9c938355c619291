package main

import (
	"fmt"
	"slices"
	"time"
)

// spread shows repeated measurements: the middle one, and how far they lie apart, which on a shared machine is a lot.
func spread(format string, values []float64) string {
	if len(values) < 2 {
		return fmt.Sprintf(format, middle(values))
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+", %d runs)", middle(values), slices.Min(values), slices.Max(values), len(values))
}

// middle is the median.
func middle(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
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
