package apiproxy

import (
	"net/netip"
	"sync"
	"time"

	"hermes-mobile/internal/ratelimit"
)

// Limits on wrong passwords and keys. Right ones don't count.
var (
	guessesNetwork = ratelimit.PerMinute(10, 10)  // of an address, or an IPv6 /64
	guessesRegion  = ratelimit.PerMinute(40, 40)  // of a /24, or an IPv6 /48
	guessesAll     = ratelimit.PerMinute(120, 60) // of all networks from which nobody has logged in yet
	guessesAccount = ratelimit.PerMinute(10, 1)   // of an account, from anywhere
	// loginsAccount limits logins with the right password: checking one is work too.
	loginsAccount = ratelimit.PerMinute(60, 60)
)

const (
	// maxGuessKeys bounds the counts of each kind. A count that is back at its limit takes no
	// memory. Made-up names and addresses can't push out the others, because guessesAll limits them
	// first.
	maxGuessKeys = 8192
	// maxAccountKey is how many bytes of a name tell accounts apart. No user has a longer name.
	maxAccountKey = 64
)

// guesses counts wrong passwords and keys.
type guesses struct {
	networks, regions *ratelimit.Buckets[netip.Prefix]
	accounts, logins  *ratelimit.Buckets[string]
	all               *ratelimit.Buckets[struct{}]

	mu    sync.Mutex
	known *ratelimit.Table[netip.Prefix, struct{}] // networks from which somebody has logged in
}

func newGuesses(now func() time.Time) *guesses {
	return &guesses{
		networks: ratelimit.NewBuckets[netip.Prefix](guessesNetwork, maxGuessKeys, now),
		regions:  ratelimit.NewBuckets[netip.Prefix](guessesRegion, maxGuessKeys, now),
		accounts: ratelimit.NewBuckets[string](guessesAccount, maxGuessKeys, now),
		logins:   ratelimit.NewBuckets[string](loginsAccount, maxGuessKeys, now),
		all:      ratelimit.NewBuckets[struct{}](guessesAll, 1, now),
		known:    ratelimit.NewTable[netip.Prefix, struct{}](maxGuessKeys),
	}
}

// attempt is a password or a key that is being checked. It counts as a guess until one of its
// methods settles it, which must happen once.
type attempt struct {
	of      *guesses
	network netip.Prefix
	account string
	holds   []func(used bool)
}

// begin counts an attempt from an address for an account, or for none. If there were too many
// guesses, it returns how long to wait.
func (g *guesses) begin(addr netip.Addr, account string) (a *attempt, wait time.Duration) {
	a = &attempt{of: g, network: ratelimit.Network(addr), account: account[:min(len(account), maxAccountKey)]}
	add := func(settle func(bool), w time.Duration) bool {
		if wait = w; wait == 0 {
			a.holds = append(a.holds, settle)
		}
		return wait == 0
	}
	ok := add(g.networks.Hold(a.network)) && add(g.regions.Hold(ratelimit.Region(addr))) && (g.knows(a.network) || add(g.all.Hold(struct{}{})))
	if ok && a.account != "" {
		if wait = g.logins.Wait(a.account); wait == 0 {
			add(g.accounts.Hold(a.account))
		}
	}
	if wait > 0 {
		a.canceled()
		return nil, wait
	}
	return a, 0
}

func (g *guesses) knows(network netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known.Get(network) != nil
}

// wrong counts the attempt as a guess.
func (a *attempt) wrong() { a.settle(true) }

// canceled forgets an attempt that came to no result.
func (a *attempt) canceled() { a.settle(false) }

// right forgets the attempt as a guess and counts the login.
func (a *attempt) right() {
	a.settle(false)
	a.of.mu.Lock()
	a.of.known.Touch(a.network, nil)
	a.of.mu.Unlock()
	a.of.logins.Take(a.account)
}

func (a *attempt) settle(used bool) {
	for _, hold := range a.holds {
		hold(used)
	}
}
