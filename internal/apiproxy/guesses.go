package apiproxy

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"time"
)

// allowance is how often something may be done at once, and how much of that comes back each minute.
type allowance struct{ size, perMinute float64 }

// What is allowed of wrong passwords and keys. Right ones do not count.
var (
	guessesNetwork = allowance{10, 10}  // of an address, or a /64 of IPv6
	guessesRegion  = allowance{40, 40}  // of a /24, or a /48
	guessesAll     = allowance{120, 60} // of all networks in which nobody has logged in yet
	guessesAccount = allowance{10, 1}   // of an account, from anywhere
	// loginsAccount is for logins with the right password: each is work, too.
	loginsAccount = allowance{60, 60}
)

// guessSlots is how many counts there are of each kind.
const guessSlots = 8192

// guesses counts wrong passwords and keys. It has a fixed number of counts, so whoever comes with many addresses or makes names up
// takes no memory and pushes no other's count out; who shares a count by chance waits a little more.
type guesses struct {
	now  func() time.Time
	seed maphash.Seed

	mu                                  sync.Mutex
	networks, regions, accounts, logins []bucket
	known                               []bool // networks in which somebody has logged in
	all                                 bucket
}

// bucket holds what is left of an allowance; the zero value is full.
type bucket struct {
	used float64
	at   time.Time
}

// left says how long it takes until one can be taken: not at all where one is left.
func (b *bucket) left(now time.Time, a allowance) (wait time.Duration) {
	b.used = max(0, b.used-now.Sub(b.at).Minutes()*a.perMinute)
	b.at = now
	if over := b.used + 1 - a.size; over > 0 {
		return time.Duration(math.Ceil(over / a.perMinute * float64(time.Minute)))
	}
	return 0
}

// take takes one, or says how long to wait for it.
func (b *bucket) take(now time.Time, a allowance) (wait time.Duration) {
	if wait = b.left(now, a); wait == 0 {
		b.used++
	}
	return wait
}

func (b *bucket) giveBack() { b.used = max(0, b.used-1) }

func newGuesses(now func() time.Time) *guesses {
	return &guesses{now: now, seed: maphash.MakeSeed(), networks: make([]bucket, guessSlots), regions: make([]bucket, guessSlots), accounts: make([]bucket, guessSlots),
		logins: make([]bucket, guessSlots), known: make([]bool, guessSlots)}
}

func (g *guesses) slot(key string) uint64 { return maphash.String(g.seed, key) % guessSlots }

// network is what one customer has: an address, or a /64 of IPv6. region is what one provider hands out nearby.
func network(a netip.Addr) (network, region string) {
	a = a.Unmap().WithZone("")
	bits, wide := 64, 48
	if a.Is4() {
		bits, wide = 32, 24
	}
	n, errN := a.Prefix(bits)
	r, errR := a.Prefix(wide)
	if errN != nil || errR != nil {
		return a.String(), a.String()
	}
	return n.String(), r.String()
}

// try is a password or a key that is being looked at. Until it is known to be right it counts as a guess.
type try struct {
	network, account uint64
	taken            []*bucket
}

// begin counts a try from an address, for an account or none, and says how long to wait where there were too many.
func (g *guesses) begin(addr netip.Addr, account string) (t try, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	near, wide := network(addr)
	t = try{network: g.slot(near), account: g.slot(account)}
	take := func(b *bucket, a allowance) bool {
		if wait = b.take(now, a); wait == 0 {
			t.taken = append(t.taken, b)
		}
		return wait == 0
	}
	ok := take(&g.networks[t.network], guessesNetwork) && take(&g.regions[g.slot(wide)], guessesRegion) && (g.known[t.network] || take(&g.all, guessesAll))
	if ok && account != "" {
		if wait = g.logins[t.account].left(now, loginsAccount); wait == 0 {
			take(&g.accounts[t.account], guessesAccount)
		}
	}
	if wait > 0 {
		g.forget(t)
	}
	return t, wait
}

// cancel takes a try back that came to nothing.
func (g *guesses) cancel(t try) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(t)
}

// right takes a try back that was right, and counts the login.
func (g *guesses) right(t try) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(t)
	g.known[t.network] = true
	g.logins[t.account].take(g.now(), loginsAccount)
}

func (g *guesses) forget(t try) {
	for _, b := range t.taken {
		b.giveBack()
	}
}
