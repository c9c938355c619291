package access

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of guessing (protocol §2).
const (
	guessLimit   = 10               // wrong tokens or codes
	guessWindow  = time.Minute      // within this
	firstBlock   = time.Minute      // block an address for this, twice as long each time,
	longestBlock = 15 * time.Minute // but not for longer than this
	maxGuessers  = 50_000
)

// Guard counts wrong tokens and pairing codes by address. After 10 in a minute
// the address is blocked for a minute. When it goes on, during the block (on
// connections that were open) or after it, the next block is twice as long, up
// to 15 minutes; 15 quiet minutes after a block all is forgotten. A right
// token forgets nothing, since a guesser may have one.
//
// IPv6 addresses count by /64, which is what one customer has. At most 50,000
// are remembered; then those go first that were quiet for longest and are not
// blocked. Safe for concurrent use.
type Guard struct {
	now   func() time.Time
	mu    sync.Mutex
	known *ledger[netip.Addr, guesses]
}

type guesses struct {
	recent []time.Time // of the last guessWindow, since the last block began
	until  time.Time   // end of the last block
	blocks int         // blocks in a row
}

// NewGuard makes a guard. The clock is time.Now, or a test's.
func NewGuard(now func() time.Time) *Guard {
	return &Guard{now: now, known: newLedger[netip.Addr, guesses](maxGuessers)}
}

// Wrong counts a wrong token or code.
func (g *Guard) Wrong(addr netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.sweep(now)
	w := g.known.touch(Network(addr), func(w *guesses) bool { return now.Before(w.until) })
	if now.After(w.until.Add(longestBlock)) {
		w.blocks = 0
	}
	w.recent = append(within(w.recent, now.Add(-guessWindow)), now)
	if len(w.recent) < guessLimit {
		return
	}
	w.recent = nil
	w.until = now.Add(min(firstBlock<<min(w.blocks, 10), longestBlock))
	w.blocks++
}

// Blocked says whether upgrades from the address are to be refused, and for
// how long.
func (g *Guard) Blocked(addr netip.Addr) (retryAfter time.Duration, blocked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.sweep(now)
	w := g.known.get(Network(addr))
	if w == nil || !now.Before(w.until) {
		return 0, false
	}
	return w.until.Sub(now), true
}

func (g *Guard) sweep(now time.Time) {
	g.known.sweep(func(w *guesses) bool {
		return now.After(w.until.Add(longestBlock)) && len(within(w.recent, now.Add(-guessWindow))) == 0
	})
}

// Network gives what counts as one client where addresses are counted: an IPv4 address, or the
// /64 of an IPv6 address, which is what one customer has.
func Network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr
	}
	return prefix.Addr()
}

// within drops the times that are not after the given one. They are sorted.
func within(times []time.Time, after time.Time) []time.Time {
	for len(times) > 0 && !times[0].After(after) {
		times = times[1:]
	}
	return times
}
