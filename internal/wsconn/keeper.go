package wsconn

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keeperLooks is how often per ping interval a connection is checked. It bounds by how much the
	// silence limit is exceeded.
	keeperLooks = 5
	// keeperSlots is the number of ticks in an interval, over which the connections are spread. It
	// is a multiple of keeperLooks.
	keeperSlots = 50 * keeperLooks
	// restAfter is the number of silent ticks after which a connection rests (park.go).
	restAfter = keeperSlots / keeperLooks
	// busy is the value of Conn.seen while a handler works for the peer: a handler that takes a
	// minute must not make its peer look silent.
	busy = 0
)

// Keeper is the heartbeat of all connections, with one goroutine: it pings them and drops those
// that are silent. It spreads the connections over the ping interval, so there is never a burst,
// and needs eight bytes per connection.
//
// Keeper counts silence in its own ticks: after a machine has slept, peers still have their time to
// answer a ping.
type Keeper struct {
	interval time.Duration
	limit    uint32        // in ticks, 0: none
	tick     atomic.Uint32 // never busy

	mu    sync.Mutex
	slots [keeperSlots][]*Conn
}

// keeperSlot is the place of a Conn.
type keeperSlot struct {
	slot, index int32
	in          bool
}

// NewKeeper returns a Keeper that pings every connection once per interval and drops it with
// ErrSilent after limit without traffic, at most a fifth of the interval later. A limit of 0 drops
// none. The minimum interval is 250 milliseconds.
func NewKeeper(interval, limit time.Duration) *Keeper {
	k := &Keeper{interval: max(interval, keeperSlots*time.Millisecond)}
	if limit > 0 {
		k.limit = uint32(limit/(k.interval/keeperSlots)) + 1
	}
	k.tick.Store(1)
	return k
}

// Silence returns the longest time without traffic of a peer that was dropped with ErrSilent. It is
// generous, since a busy machine drops peers later.
func (k *Keeper) Silence() time.Duration {
	return time.Duration(k.limit)*(k.interval/keeperSlots) + k.interval
}

// Run works until ctx is done. It must run once.
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
			clear(conns) // the scratch slice must keep no connection in memory
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

// now returns the value for Conn.seen. Like add and remove it works on a nil Keeper.
func (k *Keeper) now() uint32 {
	if k == nil {
		return busy
	}
	return k.tick.Load()
}

// add puts c into a random slot: peers that all reconnect in the same second after a restart must
// not be pinged in the same second forever.
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
