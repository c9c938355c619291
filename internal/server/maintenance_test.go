package server

import (
	"testing"
	"time"
)

// What is old is judged by the time that has passed where the clock was set forward, and by the
// clock where it was set back.
func TestSweepTime(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name      string
		now, want time.Time
	}{
		{"left alone", start.Add(time.Hour), start.Add(time.Hour)},
		{"set forward by a month", start.AddDate(0, 1, 0), start.Add(time.Hour)},
		{"set back by a day", start.Add(-23 * time.Hour), start.Add(-23 * time.Hour)},
	} {
		if got := sweepTime(start, time.Hour, c.now); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
