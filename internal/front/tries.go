package front

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"time"
)

// How often a password may be tried.
const (
	triesAddress   = 10 // of an address, right or wrong, and again
	triesPerMinute = 10
	triesAccount   = 10 // wrong ones of an account, from all addresses, and again
	wrongPerMinute = 1
	trySlots       = 8192
)

// tries counts tries to log in. It has a fixed number of counts, so whoever comes with many addresses or makes names up takes
// no memory and pushes no other's count out; who shares a count by chance waits a little more.
type tries struct {
	now  func() time.Time
	seed maphash.Seed

	mu                  sync.Mutex
	addresses, accounts []bucket
}

// bucket holds what is left of an allowance; the zero value is full.
type bucket struct {
	used float64
	at   time.Time
}

// take takes one of size, of which perMinute come back; where none is left it says how long one takes.
func (b *bucket) take(now time.Time, size, perMinute float64) (wait time.Duration) {
	b.used = max(0, b.used-now.Sub(b.at).Minutes()*perMinute)
	b.at = now
	if over := b.used + 1 - size; over > 0 {
		return time.Duration(math.Ceil(over / perMinute * float64(time.Minute)))
	}
	b.used++
	return 0
}

func newTries(now func() time.Time) *tries {
	return &tries{now: now, seed: maphash.MakeSeed(), addresses: make([]bucket, trySlots), accounts: make([]bucket, trySlots)}
}

func (t *tries) slot(list []bucket, key string) *bucket {
	return &list[maphash.String(t.seed, key)%trySlots]
}

// network is what one customer has: an address, or a /64 of IPv6.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// begin counts a try, and says how long to wait where there were too many.
func (t *tries) begin(addr netip.Addr, name string) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if wait = t.slot(t.addresses, network(addr)).take(now, triesAddress, triesPerMinute); wait > 0 {
		return wait
	}
	return t.slot(t.accounts, name).take(now, triesAccount, wrongPerMinute)
}

// right takes back what a right password was counted for its account.
func (t *tries) right(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.slot(t.accounts, name)
	b.used = max(0, b.used-1)
}
