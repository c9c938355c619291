package relay

import "time"

const (
	maxConversations = 100_000
	sweepEvery       = time.Minute
)

// conversations are those of one gateway. The lock of the gateway must be held.
type conversations struct {
	now  func() time.Time
	make func(device string) *conversation

	all    map[string]*conversation   // by device
	active map[*conversation]struct{} // those at which the clock must look
	swept  time.Time
}

// of returns the conversation of a device, or nil if there are too many.
func (cs *conversations) of(device string) *conversation {
	c := cs.all[device]
	if c == nil && len(cs.all) < maxConversations {
		c = cs.make(device)
		cs.all[device] = c
	}
	return c
}

// wake has the clock look at a conversation.
func (cs *conversations) wake(c *conversation) { cs.active[c] = struct{}{} }

// touched has the clock look at a conversation if it must.
func (cs *conversations) touched(c *conversation) {
	if c.busy() {
		cs.wake(c)
	}
}

// forget drops the conversation of a device that is gone.
func (cs *conversations) forget(device string) {
	if c := cs.all[device]; c != nil && c.turns.running == nil {
		cs.drop(c)
	}
}

func (cs *conversations) drop(c *conversation) {
	delete(cs.active, c)
	delete(cs.all, c.device)
}

// clock looks at the active conversations, and drops those that have not been used for long.
func (cs *conversations) clock(now time.Time) {
	for c := range cs.active {
		if !c.clock(now) {
			delete(cs.active, c)
		}
	}
	if now.Sub(cs.swept) <= sweepEvery {
		return
	}
	cs.swept = now
	for _, c := range cs.all {
		if c.unused(now) {
			cs.drop(c)
		}
	}
}

// expireCards closes the cards of gateway processes other than the one with the nonce keep, or all if
// keep is empty.
func (cs *conversations) expireCards(keep string) {
	for _, c := range cs.all {
		c.cards.expire(keep)
	}
}

// turns counts the running turns.
func (cs *conversations) turns() (n int) {
	for c := range cs.active {
		if c.turns.running != nil {
			n++
		}
	}
	return n
}
