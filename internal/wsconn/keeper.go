package wsconn

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keeperLooks is how often in a ping interval a connection is looked at: it
	// bounds by how much the silence limit is overrun.
	keeperLooks = 5
	// keeperSlots is the number of ticks in an interval, so the parts into which
	// the connections are spread. A multiple of keeperLooks.
	keeperSlots = 50 * keeperLooks
	// restAfter is for how many ticks nothing came before a connection rests (park.go).
	restAfter = keeperSlots / keeperLooks
	// busy stands in Conn.seen while the peer is not waited for but worked
	// for: a handler that takes a minute must not make its peer look silent.
	busy = 0
)

// Keeper pings connections and drops those that have gone silent, with one
// goroutine for all of them. The connections are spread over the ping interval, so
// that there is never a burst, and cost eight bytes each here.
//
// Silence is counted in the Keeper's own ticks: after a machine has slept, peers
// have their time to answer a ping before they are dropped.
type Keeper struct {
	interval time.Duration
	limit    uint32        // in ticks, 0: none
	tick     atomic.Uint32 // never busy

	mu    sync.Mutex
	slots [keeperSlots][]*Conn
}

// keeperSlot is where a Conn stands.
type keeperSlot struct {
	slot, index int32
	in          bool
}

// NewKeeper returns a Keeper that pings every connection once in an interval and
// drops it with ErrSilent when nothing came from it for limit, at most a fifth
// of the interval later. A limit of 0 drops none. An interval shorter than
// 250 milliseconds is taken as that.
func NewKeeper(interval, limit time.Duration) *Keeper {
	k := &Keeper{interval: max(interval, keeperSlots*time.Millisecond)}
	if limit > 0 {
		k.limit = uint32(limit/(k.interval/keeperSlots)) + 1
	}
	k.tick.Store(1)
	return k
}

// Silence returns how long at most nothing had come from a peer that was dropped
// with ErrSilent; generously, since a busy machine drops it later.
func (k *Keeper) Silence() time.Duration {
	return time.Duration(k.limit)*(k.interval/keeperSlots) + k.interval
}

// Run does the work until ctx is done. It must run once.
func (k *Keeper) Run(ctx context.Context) {
	t := time.NewTicker(k.interval / keeperSlots)
	defer t.Stop()
	var conns []*Conn
	for hand := 0; ; hand = (hand + 1) % keeperSlots {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := k.advance()
		for look := range keeperLooks {
			conns = k.at((hand+look*keeperSlots/keeperLooks)%keeperSlots, conns[:0])
			for _, c := range conns {
				seen := c.seen.Load()
				if seen != busy && k.limit > 0 && now-seen > k.limit {
					c.kill(ErrSilent, reset)
					continue
				}
				if look == 0 {
					c.Ping()
				}
				if seen != busy && now-seen >= restAfter {
					c.rest()
				}
			}
			clear(conns) // the scratch slice must keep no connection alive
		}
	}
}

func (k *Keeper) advance() uint32 {
	now := k.tick.Add(1)
	if now == busy {
		now = k.tick.Add(1)
	}
	return now
}

// at copies a slot, because connections leave it while they are dropped.
func (k *Keeper) at(slot int, to []*Conn) []*Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(to, k.slots[slot]...)
}

// now is what Conn.seen is set to. Like add and remove it works on a nil Keeper.
func (k *Keeper) now() uint32 {
	if k == nil {
		return busy
	}
	return k.tick.Load()
}

// add puts c into a random slot: peers that all come back in the same second after
// a restart must not be pinged in the same second for ever.
func (k *Keeper) add(c *Conn) {
	if k == nil {
		return
	}
	slot := rand.Int32N(keeperSlots)
	k.mu.Lock()
	defer k.mu.Unlock()
	c.slot = keeperSlot{slot, int32(len(k.slots[slot])), true}
	k.slots[slot] = append(k.slots[slot], c)
}

func (k *Keeper) remove(c *Conn) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !c.slot.in {
		return
	}
	s := k.slots[c.slot.slot]
	last := len(s) - 1
	s[c.slot.index] = s[last]
	s[c.slot.index].slot.index = c.slot.index
	s[last] = nil
	k.slots[c.slot.slot] = s[:last]
	c.slot.in = false
}
