package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	tidyEvery = 5 * time.Second
	tidyMin   = 200 // connections that were opened or closed
	// tidyStill is for how many ticks their number must be stable. An idle connection gives its
	// stack back within two ticks of the heartbeat, which has the same interval.
	tidyStill = 3
)

// tidy returns memory to the system after many connections were opened or closed. The stack of each
// grew for its hello, and collections are rare on an idle server.
func tidy(ctx context.Context, connections func() int) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	var t crowd
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if t.settled(connections()) {
			runtime.GC()
			runtime.GC()
			debug.FreeOSMemory() // the third collection
		}
	}
}

// crowd watches the number of connections.
type crowd struct {
	tidied int // the number at the last collection
	before int // the number at the last tick
	still  int // ticks since the number changed
}

// settled reports, once, that the number has changed by much and is stable now.
func (c *crowd) settled(n int) bool {
	moves := distance(n, c.before) > max(n/50, 2)
	c.before = n
	if c.still++; moves {
		c.still = 0
	}
	if c.still < tidyStill || distance(n, c.tidied) < max(tidyMin, c.tidied/8) {
		return false
	}
	c.tidied = n
	return true
}

func distance(a, b int) int { return max(a-b, b-a) }
