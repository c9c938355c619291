package doctor

import (
	"fmt"
	"math"
	"time"

	"hermes-mobile/internal/quota"
)

// clock formats a time of today.
func clock(t time.Time) string { return t.Local().Format("15:04") }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size formats a number of bytes.
func size(n uint64) string { return quota.Size(int64(min(n, math.MaxInt64))) }

// stretch formats a duration, rounded for reading.
func stretch(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 2*time.Minute:
		return plural(int(d.Seconds()), "second", "seconds")
	case d < 2*time.Hour:
		return plural(int(d.Minutes()), "minute", "minutes")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour", "hours")
	}
	return plural(int(d.Hours()/24), "day", "days")
}
