package access

import (
	"time"

	"hermes-mobile/internal/ratelimit"
)

// Limits on replacing a device's connection (doc/protocol.md §2).
const (
	replaceLimit  = 5
	replaceWindow = time.Minute
	maxLimited    = 50_000
)

// Limiter allows a device 5 events in any minute. It stops two apps that share one id from
// replacing each other's connection over and over. It remembers the 50,000 newest ids.
type Limiter = ratelimit.Windows[string]

// NewLimiter returns a limiter. The clock is time.Now, or a test's.
func NewLimiter(now func() time.Time) *Limiter {
	return ratelimit.NewWindows[string](replaceLimit, replaceWindow, maxLimited, now)
}
