package access

import (
	"net/netip"
	"sync"
	"time"

	"hermes-mobile/internal/ratelimit"
)

// Limits on guessing (doc/protocol.md §2).
const (
	guessLimit   = 10               // wrong tokens or codes
	guessWindow  = time.Minute      // within this time
	firstBlock   = time.Minute      // block an address for this long, twice as long each time,
	longestBlock = 15 * time.Minute // but no longer than this
	maxGuessers  = 50_000
)

// Guard counts wrong tokens and pairing codes by address. After 10 wrong ones in a minute it blocks
// the address for a minute. If the address goes on, during the block (on connections that were
// open) or after it, the next block is twice as long, up to 15 minutes. Guard forgets an address 15
// quiet minutes after a block. A right token forgets nothing, because a guesser may have one.
//
// Addresses count by [ratelimit.Network]. Guard remembers at most 50,000 of them. Beyond that, it
// forgets the one that was quiet for longest and isn't blocked. It is safe for concurrent use.
type Guard struct {
	now   func() time.Time
	mu    sync.Mutex
	known *ratelimit.Table[netip.Prefix, guesses]
}

type guesses struct {
	recent ratelimit.Window // since the last block began
	until  time.Time        // end of the last block
	blocks int              // blocks in a row
}

// NewGuard returns a guard. The clock is time.Now, or a test's.
func NewGuard(now func() time.Time) *Guard {
	return &Guard{now: now, known: ratelimit.NewTable[netip.Prefix, guesses](maxGuessers)}
}

// Wrong counts a wrong token or code.
func (g *Guard) Wrong(addr netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.sweep(now)
	w := g.known.Touch(ratelimit.Network(addr), func(w *guesses) bool { return now.Before(w.until) })
	if now.After(w.until.Add(longestBlock)) {
		w.blocks = 0
	}
	if w.recent.Add(now, guessWindow) < guessLimit {
		return
	}
	w.recent.Reset()
	w.until = now.Add(min(firstBlock<<min(w.blocks, 10), longestBlock))
	w.blocks++
}

// Blocked reports whether to reject connections from an address, and for how long.
func (g *Guard) Blocked(addr netip.Addr) (retryAfter time.Duration, blocked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.sweep(now)
	w := g.known.Get(ratelimit.Network(addr))
	if w == nil || !now.Before(w.until) {
		return 0, false
	}
	return w.until.Sub(now), true
}

func (g *Guard) sweep(now time.Time) {
	g.known.Sweep(func(w *guesses) bool {
		return now.After(w.until.Add(longestBlock)) && w.recent.Count(now, guessWindow) == 0
	})
}
