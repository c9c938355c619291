package relay

import "time"

// When a gateway has said that a turn is over it holds the session for a moment still. A command that comes then makes it deaf
// for 30 s and more, for everybody (relay-facts §7): an older one for its answer, a newer one for the card that asks whether it
// is meant. So a command after a turn is parked for as long as the gateway rests.
//
// Where what comes during a turn is added to it, a text that comes in that moment is added to a turn that is over: nobody reads it
// before the next one. So such a text is parked for a few rounds of the gateway's loop, too.
const (
	// restSession is how long that is where the gateway is quick: more than 0.6 s when it has much to do.
	restSession = 2 * time.Second
	// restPongs: a gateway whose event loop stands still, on a small machine or for the work of other turns, needs longer by the
	// clock. It needs some ten rounds of that loop, and each pong that is answered by another ping is a round at least.
	restPongs = 20
	// stoodStill is how long an answer to a ping takes where the loop stood still. An older gateway needs restSession anew then:
	// it had none of the time that has passed.
	stoodStill = 500 * time.Millisecond
	restMax    = 30 * time.Second // and no longer than it is deaf
	pingAgain  = time.Second      // a ping may have gone to a connection that is gone

	settleMax = 5 * time.Second // that a text waits; after that the session is free, or the loop stands still for long
)

// rests reports whether the gateway may still hold the session of a turn that has ended.
func (g *gateway) rests(c *convo) bool {
	now := g.a.now()
	return now.Sub(c.restFrom) < restSession || now.Sub(c.ended) < restMax && g.lagging(c)
}

// holds reports whether an event has to wait since the gateway may still hold the session of a turn that has ended.
func (g *gateway) holds(c *convo, it *item) bool {
	return it.command && g.rests(c) || g.steers && g.a.now().Sub(c.ended) < settleMax && g.lagging(c)
}

// lagging reports whether too few pongs came since a turn of the conversation has ended.
func (g *gateway) lagging(c *convo) bool { return g.pongs-c.pongs < restPongs }

// ponged counts the rounds of the gateway's event loop while somebody waits for them.
func (g *gateway) ponged() {
	now := g.a.now()
	g.pongs++
	stood := !g.unanswered.IsZero() && now.Sub(g.unanswered) > stoodStill
	g.unanswered = time.Time{}
	again := false
	for c := range g.active {
		if c.parked == nil {
			continue
		}
		if stood && now.Sub(c.ended) < restMax {
			c.restFrom = now
		}
		again = again || g.lagging(c)
	}
	if again {
		g.ping()
	}
}

func (g *gateway) ping() {
	if g.link == nil {
		return
	}
	g.pinged = g.a.now()
	if g.unanswered.IsZero() {
		g.unanswered = g.pinged
	}
	g.link.conn.Ping()
}
