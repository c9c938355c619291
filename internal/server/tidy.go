package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	tidyEvery = 5 * time.Second
	tidyMin   = 200 // connections that came or went
	// tidyStill is for how many looks their number stands still before: a connection rests, and gives its stack back, within two
	// of the keeper's looks, which are as far apart.
	tidyStill = 3
)

// tidy gives back the memory that many connections needed while they came, or left when they went. The stack of each grew for its
// hello; by themselves collections come rarely where nothing happens.
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
			debug.FreeOSMemory() // is the third
		}
	}
}

// crowd watches how many connections there are.
type crowd struct {
	tidied int // how many there were when it was last tidied
	before int // at the last look
	still  int // looks since the number moved
}

// settled reports, once, that the number has changed by much and stands still now.
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
